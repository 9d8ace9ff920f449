package top

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// inboundCalls records n inbound calls of a resource, each with a call of "db" below it. It also records a call that
// stays in flight, a refused call and a background call, and ends the second.
func (s *service) inboundCalls(t *testing.T, resource string, n int, rt time.Duration) {
	t.Helper()
	enter := func(resource string, err error, opts ...collector.CallOption) (below, exit func()) {
		ctx, e, wrong := s.Enter(t.Context(), resource, opts...)
		if wrong != nil {
			t.Fatal(wrong)
		}
		below = func() {
			_, db, wrong := s.Enter(ctx, "db")
			if wrong != nil {
				t.Fatal(wrong)
			}
			db.Exit(nil)
		}
		return below, func() { e.Exit(err) }
	}
	enter(resource, nil, collector.Inbound())
	_, exit := enter("job", nil)
	exit()
	s.Block(t.Context(), resource, "full", collector.Inbound())
	for i := range n {
		var err error
		if i == 0 {
			err = errors.New("x")
		}
		below, exit := enter(resource, err, collector.Inbound())
		below()
		s.now = s.now.Add(rt)
		exit()
	}
	s.end()
}

// cut returns the text of [Once] without the header and the seconds.
func cut(text string) (list []string) {
	for _, s := range strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:] {
		_, s, _ = strings.Cut(s, "\t")
		list = append(list, strings.ReplaceAll(s, "\t", " "))
	}
	return list
}

// The total counts inbound calls in every column. Nested calls and background calls are not part of it. A resource with
// the name of the total remains a resource.
func TestTotalIsInbound(t *testing.T) {
	s := newService(t)
	base := s.serve(t)
	for _, name := range []string{kindInbound, "sum", "all", collector.InboundTotal} {
		s.Resource(name).Block("")
	}
	s.inboundCalls(t, "GET /a", 9, time.Millisecond)
	s.inboundCalls(t, kindInbound, 4, 50*time.Millisecond)
	want := []string{
		"5 1 1 50 50 2.2 10 inbound ",
		"5 1 1 50 50 1.2 5 resource inbound",
		"4 0 0 0 0 0 9 resource db",
		"1 0 0 0 0 0 1 resource job",
		"0 0 0 - - 1 10 resource GET /a",
		"0 0 0 - - 0 0 resource ___total_inbound_traffic__",
		"0 0 0 - - 0 0 resource all",
		"0 0 0 - - 0 0 resource sum",
	}
	for _, filter := range []string{"", "a"} {
		got := cut(once(t, base, Options{Filter: filter}))
		for i := range got {
			if i < len(want) && filter == "" && got[i] != want[i] || i == 0 && got[0] != want[0] {
				t.Errorf("line %d with %q is %q, want %q", i, filter, got[i], want[i])
			}
		}
		if n := map[string]int{"": 8, "a": 4}[filter]; len(got) != n {
			t.Errorf("%q has %d lines:\n%s", filter, len(got), strings.Join(got, "\n"))
		}
	}
	// The screen shows the same numbers, and both seconds.
	u := newUI(t, base)
	u.read(t, s.now)
	got := strings.Join(drawn(t, u, 100, 14), "\n")
	total := strings.Join(strings.Fields(strings.Split(got, "\n")[2]), " ")
	if total != "inbound 5 1 1 50.0ms 50.0ms 2.20 10 █▅" ||
		strings.Contains(got, "nothing is") ||
		!strings.Contains(got, "  7 resources\n") {
		t.Errorf("the screen is\n%s", got)
	}
	if first := newLine(key{}, u.targets, s.now.Unix()-2); first.values[pass] != 10 || first.values[complete] != 9 ||
		first.mean() != 0.001 ||
		math.Abs(first.values[inFlight]-1.009) > 1e-9 {
		t.Errorf("the first second is %+v", first)
	}
	// Without new calls the total is 0. After a minute without samples there is no total.
	s.end()
	if got := cut(once(t, base, Options{Filter: "none"})); fmt.Sprint(got) != "[0 0 0 - - 2 10 inbound ]" {
		t.Errorf("%q", got)
	}
	if u.targets[0].add(counted(s.now.Unix()+minute, map[string]float64{"a": 1}), s.now.Unix()+minute); len(
		u.table().totals,
	) != 0 {
		t.Error("the total is as old as it is")
	}
}

// A service without inbound calls has no total, because a sum would count nested calls twice.
func TestNothingIsInbound(t *testing.T) {
	s := newService(t)
	s.calls("a", 3, time.Millisecond)
	base := s.serve(t)
	for _, l := range cut(once(t, base, Options{})) {
		if !strings.Contains(l, " resource ") {
			t.Errorf("there is %q", l)
		}
	}
	u := newUI(t, base)
	u.read(t, s.now)
	if got := strings.Join(drawn(t, u, 80, 10), "\n"); !strings.Contains(got, "  nothing is inbound\nRESOURCE ") ||
		!strings.Contains(got, "\na ") ||
		strings.Contains(got, "\ninbound") {
		t.Errorf("the screen is\n%s", got)
	}
}

// The reader does not request each metric from an endpoint that refuses all requests. It requests the live page once.
func TestRefusals(t *testing.T) {
	requests := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++
		http.Error(w, "what?", http.StatusBadRequest)
	}))
	defer server.Close()
	if a := newReader(t, server.URL).read(t.Context(), inbound); a.err == nil ||
		!strings.HasSuffix(a.err.Error(), "/metrics/seconds: 400 Bad Request: what?") ||
		requests["/metrics/seconds"] != 2 || requests["/live/seconds"] != 1 {
		t.Errorf("after the requests %v: %v", requests, a.err)
	}
}

// A page without response times is valid, and the response times are unknown.
func TestUntimed(t *testing.T) {
	s := &service{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), mux: http.NewServeMux()}
	var err error
	if s.Collector, err = collector.New(collector.Options{
		Now:              func() time.Time { return s.now },
		DurationsUnknown: true,
	}); err != nil {
		t.Fatal(err)
	}
	if s.seconds, err = prom.NewSeconds(s.Collector, prom.SecondsOptions{}); err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/metrics/seconds", s.seconds)
	s.inboundCalls(t, "a", 2, 0)
	s.calls("b", 9, 0)
	base := s.serve(t)
	if got := cut(once(t, base, Options{}))[0]; got != "0 0 0 - - - 3 inbound " {
		t.Errorf("the total is %q", got)
	}
	u := newUI(t, base)
	u.read(t, s.now)
	if x := newLine(key{}, u.targets, s.now.Unix()-2); x.values[pass] != 3 || x.values[complete] != 2 ||
		!math.IsNaN(x.mean()) {
		t.Errorf("%+v", x)
	}
}

// The total has only series with its name and without a resource.
func TestForeignTotals(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, `windowstat_persecond_run 1 1767323045000
windowstat_persecond_pass{resource="a"} 7 1767323045000
windowstat_persecond_pass{resource=""} 100 1767323045000
windowstat_persecond_pass 100 1767323045000
windowstat_persecond_inbound_pass{resource="a"} 100 1767323045000
`)
	}))
	defer server.Close()
	if got := cut(once(t, server.URL, Options{})); fmt.Sprint(got) != "[7 - - - - - - resource a]" {
		t.Errorf("%q", got)
	}
}
