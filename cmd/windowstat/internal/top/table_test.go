package top

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// counted returns the samples of a second with the given passes.
func counted(unix int64, passes map[string]float64) (list []sample) {
	for name, v := range passes {
		list = append(list, sample{name, unix, pass, v})
	}
	return list
}

func titles(lines []line) string {
	var list []string
	for _, l := range lines {
		list = append(list, l.shown)
	}
	return strings.Join(list, " ")
}

func TestTable(t *testing.T) {
	b := &target{seconds: map[int64]map[string]values{}}
	b.add(counted(99, map[string]float64{"gone": 1000}), 99)
	b.add([]sample{
		{"GET /a", 100, pass, 5},
		{"GET /a", 100, complete, 4},
		{"GET /a", 100, rtSum, 2},
		{"GET /a", 100, rtP99, 0.7},
		{"get /b", 100, pass, 9},
		{"get /b", 100, block, 1},
		{"POST /c", 100, pass, 0},
		{"POST /c", 100, complete, 1},
		{"POST /c", 100, rtSum, 0.1},
		{"POST /c", 100, rtP99, 0.1},
	}, 100)
	column := func(name string) int {
		for i, c := range columns {
			if c.name == name {
				return i
			}
		}
		t.Fatal(name)
		return 0
	}
	for _, tc := range []struct {
		column  string
		reverse bool
		filter  string
		want    string
	}{
		{"pass", false, "", "get /b GET /a POST /c"},
		{"pass", true, "", "POST /c GET /a get /b"},
		{"resource", false, "", "GET /a POST /c get /b"},
		{"resource", true, "", "get /b POST /c GET /a"},
		{"mean", false, "", "GET /a POST /c get /b"}, // a line without a value comes last
		{"mean", true, "", "POST /c GET /a get /b"},
		{"p99", false, "", "GET /a POST /c get /b"},
		{"block", false, "", "get /b GET /a POST /c"},
		{"pass", false, "GET", "get /b GET /a"},
		{"pass", false, "st /", "POST /c"},
		{"pass", false, "none", ""},
	} {
		by := order{column(tc.column), tc.reverse}
		if got := titles(newTable([]*target{b}, 100, false, by, tc.filter).lines); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

// Missed seconds are unknown, the open second is absent, and old seconds are dropped.
func TestKept(t *testing.T) {
	b := &target{seconds: map[int64]map[string]values{}}
	for unix := int64(1000); unix < 1100; unix++ {
		if unix%10 == 3 {
			continue // a missed second
		}
		list := counted(unix, map[string]float64{"a": float64(unix)})
		list = append(
			list,
			sample{"a", unix, peak, float64(2000 - unix)},
			sample{"a", unix + 1, pass, 7},
		) // the open second is absent
		if unix == 1050 {
			list = append(list, sample{"b", unix, pass, 1}, sample{"b", unix - 60, pass, 1})
		}
		b.add(list, unix)
	}
	has := func(unix int64) bool { return b.seconds[unix] != nil }
	if b.newest != 1099 || len(b.seconds) != 91 || has(1093) || !has(1094) {
		t.Fatalf("newest %d, %d seconds", b.newest, len(b.seconds))
	}
	old := newLine(key{name: "a"}, []*target{b}, 1012)
	const want = "[NaN NaN 1000 1001 1002 NaN 1004 1005 1006 1007 1008 1009 1010 1011 1012]"
	if s := fmt.Sprint(old.passes(15)); s != want {
		t.Error(s)
	}
	a := newLine(key{name: "a"}, []*target{b}, 1099)
	if a.peak() != 960 || a.values[pass] != 1099 {
		t.Errorf("%+v", a)
	}
	// A past second has the highest peak of the minute before it.
	if then := newLine(key{name: "a"}, []*target{b}, 1062); then.peak() != 996 || then.values[pass] != 1062 {
		t.Errorf("%+v", then)
	}
	for at, want := range map[int64]string{1049: "a", 1050: "a b", 1093: "", 1099: "a", 990: "b", 1100: ""} {
		if got := titles(newTable([]*target{b}, at, false, order{}, "").lines); got != want {
			t.Errorf("at %d there are %q, want %q", at, got, want)
		}
	}
	b.add(counted(1650, map[string]float64{"a": 1}), 1650)
	if has(1050) || !has(1099) {
		t.Errorf("%d seconds", len(b.seconds))
	}
	b.add(nil, 2300)
	if len(b.seconds) != 1 { // a second without calls
		t.Errorf("%d seconds", len(b.seconds))
	}
	// If a clock is set back far, the table starts again. If it is set back a little, the table waits.
	b.add(counted(2290, map[string]float64{"a": 1}), 2290)
	if b.newest != 2300 {
		t.Errorf("newest %d", b.newest)
	}
	b.add(counted(1000, map[string]float64{"a": 1}), 1000)
	if b.newest != 1000 || !has(1000) || has(2290) {
		t.Errorf("newest %d", b.newest)
	}
}

// The history has a minute of 10,000 resources, or ten minutes of few. Its size is bounded for names that change all
// the time.
func TestRoom(t *testing.T) {
	for _, tc := range []struct{ resources, seconds, want int }{{10, 700, maxKept}, {50_000, 14, 13}} {
		b := &target{seconds: map[int64]map[string]values{}}
		for unix := range tc.seconds {
			var list []sample
			for i := range tc.resources {
				list = append(list, sample{fmt.Sprint(unix, "x", i), int64(1000 + unix), pass, 1})
			}
			b.add(list, int64(1000+unix))
		}
		if len(b.seconds) != tc.want {
			t.Errorf("of %d resources there are %d seconds, want %d", tc.resources, len(b.seconds), tc.want)
		}
	}
	// Old samples are not kept.
	var list []sample
	for unix := range int64(100_000) {
		list = append(list, sample{"a", unix, pass, 1})
	}
	b, before, after := &target{seconds: map[int64]map[string]values{}}, runtime.MemStats{}, runtime.MemStats{}
	runtime.ReadMemStats(&before)
	b.add(list, 100_000)
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4<<20 {
		t.Errorf("%d bytes were allocated for %d seconds", after.TotalAlloc-before.TotalAlloc, len(b.seconds))
	}
	if maxValues < minute*collector.DefaultMaxResources {
		t.Error("a minute of the default of a Collector does not fit")
	}
}

func TestGraph(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		passes []float64
		want   string
	}{
		{[]float64{}, ""},
		{[]float64{nan, 0, 1, 100}, " ▁▂█"},
		{[]float64{0, 0}, "▁▁"},
		{[]float64{5, 5, 5}, "███"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]float64{-1, 4}, "▁█"},
		{[]float64{1e308, 1e-308}, "█▂"},
	} {
		if got := graph(tc.passes, true); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.passes, got, tc.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.0004: "<0.01", 0.005: "0.01", 0.4: "0.40", 9999: "9999", 9999.6: "10.0k", 12345: "12.3k",
		99_949: "99.9k", 99_951: "100k", 999_499: "999k", 999_500: "1.00M",
		5e9: "5.00G", 7e13: "70.0T", 1e18: "huge", math.Inf(1): "huge", -5: "-5", math.MaxFloat64: "huge",
	} {
		if got := number(v); got != want || len(got) > 5 {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		0: "0ns", 5e-9: "5.00ns", 999.6e-9: "1.00µs", 12.34e-6: "12.3µs", 999.6e-6: "1.00ms", 0.1234: "123ms",
		0.9996: "1.00s", 61.23: "61.2s", 1000: "1000s",
		123456: "123ks", -1: "huge", math.Inf(1): "huge", 1e300: "huge",
	} {
		if got := duration(v); got != want || len([]rune(got)) > 6 {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if number(math.NaN()) != "-" || duration(math.NaN()) != "-" || exactly(math.NaN()) != "-" ||
		exactly(1.23456) != "1.235" ||
		exactly(1e15) != "1000000000000000" {
		t.Error("what is not there")
	}
}
