package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// fleet returns a ui with two services that have the seconds up to 1069. Service a has twice as many calls as b.
func fleet(t *testing.T) (u *ui, a, b *target) {
	t.Helper()
	u = &ui{order: order{column: 1}}
	for _, name := range []string{"a:1", "b:1"} {
		e, err := NewEndpoint(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		u.targets = append(u.targets, newTarget(e, maxKept))
	}
	a, b = u.targets[0], u.targets[1]
	for unix := int64(1000); unix < 1070; unix++ {
		u.addSecond(a, unix, 20)
		u.addSecond(b, unix, 10)
	}
	return u, a, b
}

// addSecond adds a second with a number of calls to a target. The calls of the resource "GET /x" are inbound.
func (u *ui) addSecond(x *target, unix int64, calls float64) {
	a := result{newest: unix}
	for _, name := range []string{"GET /x", inbound} {
		v := values{
			pass:      calls,
			peak:      calls + 5,
			block:     1,
			exception: 2,
			complete:  calls,
			rtSum:     calls * calls / 1000,
			rtP99:     calls,
			inFlight:  calls / 10,
		}
		for m, x := range v {
			a.samples = append(a.samples, sample{name, unix, metric(m), x})
		}
	}
	x.take(a, time.Unix(unix+1, 0))
}

// numbersOf returns the lines of the table without graphs.
func numbersOf(t *testing.T, u *ui, width int) []string {
	t.Helper()
	var list []string
	for _, s := range drawn(t, u, width, 12)[:11] {
		if s = strings.TrimRight(s, " ▁▂▃▄▅▆▇█"); s != "" && !strings.HasPrefix(s, "RESOURCE") {
			list = append(list, strings.Join(strings.Fields(s), " "))
		}
	}
	return list
}

// The table adds up calls and their response times, so the average response time covers all calls. Peaks and quantiles
// do not add up, so it shows the highest, as the title says. Separately, each target has its own lines.
func TestAddedUpAndApart(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	u, _, b := fleet(t)
	for m, v := range (values{pass: 7}) {
		u.targets[1].add([]sample{{"GET /y", 1069, metric(m), v}}, 1069)
	}
	if got, want := numbersOf(t, u, 100), []string{
		"2 targets, added up 00:17:49 2 resources P99, PEAK: the highest",
		"inbound 30 2 4 16.7ms 20.0s 3 25",
		"GET /x 30 2 4 16.7ms 20.0s 3 25",
		"GET /y 7 0 0 - 0ns 0 0",
	}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("added up there are %q, want %q", got, want)
	}
	press(u, "t")
	if got, want := numbersOf(t, u, 100), []string{
		"2 targets, apart 00:17:49 3 resources",
		"inbound a:1 20 1 2 20.0ms 20.0s 2 25",
		"inbound b:1 10 1 2 10.0ms 10.0s 1 15",
		"GET /x a:1 20 1 2 20.0ms 20.0s 2 25",
		"GET /x b:1 10 1 2 10.0ms 10.0s 1 15",
		"GET /y b:1 7 0 0 - 0ns 0 0",
	}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("apart there are %q, want %q", got, want)
	}
	press(u, "down down enter")
	if got := numbersOf(t, u, 100); got[1] != "GET /x b:1" || got[3] != "00:17:49 10 1 2 10.0ms 10.0s 1 15" {
		t.Errorf("of one target there are %q", got)
	}
	press(u, "t home enter")
	if got := numbersOf(t, u, 100); got[1] != "GET /x" || got[3] != "00:17:49 30 2 4 16.7ms 20.0s 3 25" {
		t.Errorf("of both there are %q", got)
	}
	// A value that one target does not have is unknown for all.
	b.add([]sample{{"GET /x", 1069, rtSum, math.NaN()}}, 1069)
	if numbersOf(t, u, 100)[3] != "00:17:49 30 2 4 - 20.0s 3 25" {
		t.Errorf("there are %q", numbersOf(t, u, 100))
	}
}

// The table shows a second when all responding targets have it, but waits only a few seconds for a slow target. A
// target that does not respond is named, and its calls do not count as 0.
func TestSecondsOfSeveral(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	u, a, b := fleet(t)
	refused := result{err: errors.New("connection refused")}
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{
			func() { u.addSecond(a, 1070, 40) },
			[]string{"2 targets, added up 00:17:49 1 resource P99, PEAK: the highest", "inbound 30 "},
		},
		{func() { u.addSecond(b, 1070, 30) }, []string{"2 targets, added up 00:17:50 1 ", "inbound 70 "}},
		// The table waits for b.
		{func() { u.addSecond(a, 1073, 1) }, []string{"2 targets, added up 00:17:50 1 ", "inbound 70 "}},
		{
			func() { u.addSecond(a, 1074, 50) },
			[]string{"DELAYED 4s b:1", "2 targets, added up 00:17:54 1 ", "inbound 50 "},
		},
		{func() { u.addSecond(b, 1074, 2) }, []string{"2 targets, added up 00:17:54 1 ", "inbound 52 "}},
		{
			func() { u.addSecond(a, 1075, 60); b.take(refused, time.Unix(1070, 0)) },
			[]string{"FAILING 0s b:1: connection refused", "2 targets, added up 00:17:54 1 ", "inbound 52 "},
		},
		{
			func() { u.addSecond(a, 1078, 61) },
			[]string{"FAILING 0s b:1: connection refused", "2 targets, added up 00:17:58 1 ", "inbound 61 "},
		},
		{
			func() { press(u, "[[[") },
			[]string{
				"NO DATA FOR THIS SECOND b:1",
				"2 targets, added up PAST 00:17:55, 3 s back, End: now 1 ", "inbound 60 ",
			},
		},
		{
			func() { press(u, "[") },
			[]string{
				"FAILING 0s b:1: connection refused",
				"2 targets, added up PAST 00:17:54, 4 s back, End: now 1 ", "inbound 52 ",
			},
		},
		{
			func() { press(u, "end") },
			[]string{"FAILING 0s b:1: connection refused", "2 targets, added up 00:17:58 1 ", "inbound 61 "},
		},
		{
			func() { a.take(refused, time.Unix(1070, 0)) },
			[]string{
				"FAILING 0s a:1: connection refused", "FAILING 0s b:1: connection refused",
				"2 targets, added up 00:17:58 1 ", "inbound 61 ",
			},
		},
		{
			func() { u.addSecond(b, 1082, 3) },
			[]string{"FAILING 0s a:1: connection refused", "2 targets, added up 00:18:02 1 ", "inbound 3 "},
		},
	} {
		step.do()
		got := numbersOf(t, u, 100)
		for i, want := range step.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("there is %q, want %q", got, step.want)
				break
			}
		}
	}
}

// Keys go back to the oldest kept second, and forward to the current one. New seconds arrive at the same time.
func TestPast(t *testing.T) {
	u, a, _ := fleet(t)
	for _, step := range []struct {
		keys string
		want int64
	}{
		{"[", 1068},
		{"[", 1067},
		{"]", 1068},
		{"{", 1058},
		{"}", 1068},
		{"}", 1069},
		{"]", 1069},
		{"space", 1069},
		{"[", 1068},
		{"space", 1069},
		{"{{{{{{{", 999},
		{"]", 1000},
		{"enter", 1000},
		{"esc end", 1069},
	} {
		if press(u, step.keys); u.now() != step.want {
			t.Errorf("%s shows %d, want %d", step.keys, u.now(), step.want)
		}
	}
	press(u, "space")
	for _, x := range u.targets {
		u.addSecond(x, 1080, 1)
	}
	if u.now() != 1069 || a.newest != 1080 {
		t.Errorf("%d is shown of %d", u.now(), a.newest)
	}
	if press(u, "end"); u.now() != 1080 {
		t.Errorf("%d is shown", u.now())
	}
}

// The text has the lines of all targets that can be read.
func TestOnceOfSeveral(t *testing.T) {
	var endpoints []*Endpoint
	for n := range 2 {
		s := newService(t)
		s.inboundCalls(t, "GET /x", n+2, time.Millisecond)
		endpoints = append(endpoints, newEndpoint(t, s.serve(t)))
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	var b bytes.Buffer
	err := Once(t.Context(), &b, append(endpoints, newEndpoint(t, closed.URL)), Options{})
	if err == nil ||
		!strings.Contains(
			err.Error(),
			closed.URL+" cannot be read:\ndial tcp "+closed.Listener.Addr().String()+": connect: connection refused",
		) {
		t.Error(err)
	}
	first, second := endpoints[0].Name(), endpoints[1].Name()
	if got, want := strings.Join(cut(b.String()), "\n"), strings.NewReplacer("A", first, "B", second).Replace(
		"3 1 1 1 1 1.002 3 inbound A \n4 1 1 1 1 1.003 4 inbound B \n"+
			"4 1 1 1 1 1.003 4 resource B GET /x\n3 1 1 1 1 1.002 3 resource A GET /x\n3 0 0 0 0 0 3 resource B db\n"+
			"2 0 0 0 0 0 2 resource A db\n"+
			"1 0 0 0 0 0 1 resource A job\n1 0 0 0 0 0 1 resource B job"); !sameLines(got, want) ||
		!strings.Contains(b.String(), "\tkind\ttarget\tresource\n") {
		t.Errorf("there is\n%s\nwant\n%s", got, want)
	}
}

// sameLines compares texts, ignoring the order of lines.
func sameLines(a, b string) bool {
	return len(a) == len(b) && fmt.Sprint(sortedLines(a)) == fmt.Sprint(sortedLines(b))
}

func sortedLines(s string) map[string]int {
	all := map[string]int{}
	for line := range strings.SplitSeq(s, "\n") {
		all[line]++
	}
	return all
}

// The live pages of all targets provide limits, refusals by reason, origins and codes.
func TestDetail(t *testing.T) {
	u := &ui{order: order{column: 1}}
	for n := range 2 {
		s := newService(t)
		page, err := live.New(s.Collector, live.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.mux.Handle("/live/", page)
		if err := s.SetLimits([]collector.Limit{
			{Resource: "a", Grade: collector.QPS, Count: int64(2 + n)},
			{Resource: "b", Grade: collector.Concurrency, Count: 7},
		}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			_ = s.Do(t.Context(), "a", func(context.Context) error { return nil }, collector.Origin("web"))
		}
		s.Block(t.Context(), "a", "full\x1b[2J", collector.Inbound())
		_ = s.Do(t.Context(), "b", func(context.Context) error { return nil })
		s.end()
		u.targets = append(u.targets, newUI(t, s.serve(t)).targets...)
	}
	u.read(t, time.Now())
	for _, step := range [][2]string{
		{"1 home enter", "limits: qps 2, qps 3\nrefused since the start: qps a 5, full\\x1b[2J 2\n" +
			"origins: web 10, (none) 2\ncallers: _default 12\ncodes: (none) 5\nSECOND"},
		{"down", "b\nlimits: concurrency 7\norigins: (none) 2\ncallers: _default 2\ncodes: (none) 2\nSECOND"},
		{"t", "RESOURCE"},
		{"home enter", "\norigins: web 5, (none) 1\n"},
	} {
		press(u, step[0])
		for _, x := range u.selected.scope {
			x.take(x.read(t.Context(), u.selected.name), time.Now())
		}
		if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(
			strings.ReplaceAll(got, "  ", " "),
			step[1],
		) {
			t.Errorf("%s shows\n%s\nwant\n%s", step[0], got, step[1])
		}
	}
	// Without a live page, the screen shows the error and the seconds.
	s := newService(t)
	s.calls("a", 1, time.Millisecond)
	u = newUI(t, s.serve(t))
	u.read(t, s.now)
	press(u, "enter")
	u.targets[0].take(u.targets[0].read(t.Context(), "a"), s.now)
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "/live/seconds: 404 Not Found\nSECOND") {
		t.Errorf("without the page there is\n%s", got)
	}
}

// The screen lists the oldest groups of calls in flight of all targets, the oldest first, up to a limit. Names are
// cleaned.
func TestLongestCalls(t *testing.T) {
	with := func(resource string, calls ...share) *target {
		return &target{
			state: result{
				detail: detail{resource: resource, Now: 100_000, Details: map[string][]share{"running": calls}},
			},
		}
	}
	targets := []*target{
		with(
			"a",
			share{Origin: "web", Entrance: "http", Count: 9, Traces: []string{"4b\x1b[2J", "5"}, Since: 38_760},
			share{Entrance: "_default", Since: 98_000},
		),
		with(
			"a",
			share{Entrance: "http", Since: 40_000},
			share{Since: 98_500},
			share{Since: 98_600},
			share{Since: 98_700},
		),
		with("b", share{Entrance: "http", Since: 0}),
	}
	if got, want := strings.Join(describe(targets, "a"), "\n"),
		`in flight for longest: 9 for 1m1.2s web http 4b\x1b[2J 5, 1 for 1m0s http, 1 for 2s _default, 1 for 1.5s, 1 `+
			`for 1.4s`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := describe(targets, "c"); len(got) > 0 {
		t.Errorf("of a resource without a request: %q", got)
	}
}
