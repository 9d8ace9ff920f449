package top

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// counted is the samples of a second: of each resource what passed.
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
	x := &target{board: newBoard()}
	b := x.board
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
		{"pass", false, "", "get /b GET /a POST /c gone"},
		{"pass", true, "", "POST /c GET /a get /b gone"},
		{"resource", false, "", "GET /a POST /c get /b gone"},
		{"resource", true, "", "gone get /b POST /c GET /a"},
		{"mean", false, "", "GET /a POST /c get /b gone"}, // what has no value comes last
		{"mean", true, "", "POST /c GET /a get /b gone"},
		{"p99", false, "", "GET /a POST /c get /b gone"},
		{"block", false, "", "get /b GET /a POST /c gone"},
		{"pass", false, "GET", "get /b GET /a"},
		{"pass", false, "st /", "POST /c"},
		{"pass", false, "none", ""},
	} {
		if got := titles(table([]*target{x}, 100, false, order{column(tc.column), tc.reverse}, tc.filter)); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

// What is kept: a second that was missed is not known, the open one is none, and what is too old is gone.
func TestKept(t *testing.T) {
	x := &target{board: newBoard()}
	b := x.board
	for unix := int64(1000); unix < 1100; unix++ {
		if unix%10 == 3 {
			continue // it was missed
		}
		list := counted(unix, map[string]float64{"a": float64(unix)})
		list = append(list, sample{"a", unix, peak, float64(2000 - unix)}, sample{"a", unix + 1, pass, 7}) // the open second is none
		if unix == 1050 {
			list = append(list, sample{"b", unix, pass, 1}, sample{"b", unix - 60, pass, 1})
		}
		b.add(list, unix)
	}
	if b.newest != 1099 || len(b.rows) != 2 || b.has(1093) || !b.has(1094) {
		t.Fatalf("newest %d, %d rows", b.newest, len(b.rows))
	}
	a := of(1099, false, part{x, b.rows["a"]})
	if s := fmt.Sprint(a.passes(1012, 15)); s != "[NaN NaN 1000 1001 1002 NaN 1004 1005 1006 1007 1008 1009 1010 1011 1012]" {
		t.Error(s)
	}
	if a.stale || a.second.unix != 1099 || a.second.values[peak] != 960 || a.second.values[pass] != 1099 {
		t.Errorf("%+v", a)
	}
	// In the past the highest peak is that of the minute before.
	if then := of(1062, false, part{x, b.rows["a"]}); then.second.values[peak] != 996 || then.second.values[pass] != 1062 {
		t.Errorf("%+v", then)
	}
	for at, want := range map[int64]string{1049: "a b", 1099: "a b", 1109: "a b", 1110: "a", 999: "b", 989: ""} {
		if got := titles(table([]*target{x}, at, false, order{}, "")); got != want {
			t.Errorf("at %d there are %q, want %q", at, got, want)
		}
	}
	b.add(counted(1650, map[string]float64{"a": 1}), 1650)
	if len(b.rows) != 1 || b.has(1050) || !b.has(1099) {
		t.Errorf("%d rows", len(b.rows))
	}
	b.add(nil, 2300)
	if len(b.rows) != 0 {
		t.Errorf("%d rows", len(b.rows))
	}
	// A clock that is set back a lot is followed, one that is set back a little is waited for.
	b.add(counted(2290, map[string]float64{"a": 1}), 2290)
	if b.newest != 2300 {
		t.Errorf("newest %d", b.newest)
	}
	b.add(counted(1000, map[string]float64{"a": 1}), 1000)
	if b.newest != 1000 || b.rows["a"].seconds[0].unix != 1000 || b.has(2300) {
		t.Errorf("newest %d", b.newest)
	}
}

// Of very many resources there is a minute.
func TestKeptOfMany(t *testing.T) {
	for n, want := range map[int]int64{0: 600, 500: 600, 1000: 300, 5000: 60, maxResources: 60} {
		if got := keep(n); got != want {
			t.Errorf("of %d resources %d seconds are kept, want %d", n, got, want)
		}
	}
}

// Names that come and go without end take no more than there is room for.
func TestRoom(t *testing.T) {
	b := newBoard()
	var list []sample
	for i := range maxResources + 3 {
		list = append(list, sample{fmt.Sprint("x", i), 1001, pass, 1})
	}
	b.add(list, 1001)
	if len(b.rows) != maxResources || b.left != 3 {
		t.Errorf("%d rows, %d left out", len(b.rows), b.left)
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
		{[]float64{-1, math.Inf(1), 4}, "▁██"},
		{[]float64{math.Inf(1)}, "█"},
		{[]float64{1e308, 1e-308}, "█▂"},
	} {
		if got := string(graph(tc.passes, bars)); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.passes, got, tc.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.4: "0", 9999: "9999", 9999.6: "10.0k", 12345: "12.3k", 99_949: "99.9k", 99_951: "100k", 999_499: "999k", 999_500: "1.00M",
		5e9: "5.00G", 7e13: "70.0T", 1e18: "huge", math.Inf(1): "huge", -5: "-5", math.MaxFloat64: "huge",
	} {
		if got := number(v); got != want || len(got) > 5 {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		0: "0ns", 5e-9: "5ns", 999.6e-9: "1.00µs", 12.34e-6: "12.3µs", 999.6e-6: "1.00ms", 0.1234: "123ms", 0.9996: "1.00s", 61.23: "61.2s", 1000: "1000s",
		123456: "123ks", -1: "huge", math.Inf(1): "huge", 1e300: "huge",
	} {
		if got := duration(v); got != want || len([]rune(got)) > 6 {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if number(math.NaN()) != "-" || duration(math.NaN()) != "-" || exactly(math.NaN()) != "-" || exactly(1.23456) != "1.235" || exactly(1e15) != "1000000000000000" {
		t.Error("what is not there")
	}
}
