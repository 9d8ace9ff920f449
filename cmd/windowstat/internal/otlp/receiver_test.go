package otlp

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func pass(s *secondOf) int64     { return s.pass }
func complete(s *secondOf) int64 { return s.complete }
func inFlight(s *secondOf) int64 { return s.inFlight }

func check(t *testing.T, what string, got, want map[int64]int64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s by second: %v, want %v", what, got, want)
	}
}

// 99 spans of one second arrive 3, 8 and 13 seconds later, and count in their second. A connector that counts spans at
// their arrival would count them in three seconds.
func TestSpansCountInTheirSeconds(t *testing.T) {
	r := receive(t, Options{}, second(100), time.Time{})
	for i, now := range []float64{103, 108, 113} {
		for j := range 33 {
			r.send(t, now, at(uint64(1+33*i+j), 100.2, 100.7))
		}
	}
	long := at(1000, 100.5, 102.5)
	long.failed = true
	r.send(t, 113, long)
	if err := r.advance(second(140)); err != nil {
		t.Fatal(err)
	}
	v := r.stats.Resource("shop: GET /cart").View()
	check(t, "passed", perSecond(v, pass), map[int64]int64{100: 100})
	check(t, "completed", perSecond(v, complete), map[int64]int64{100: 99, 102: 1})
	check(t, "failed", perSecond(v, func(s *secondOf) int64 { return s.exception }), map[int64]int64{102: 1})
	check(t, "in flight at the end", perSecond(v, inFlight), map[int64]int64{100: 1, 101: 1})
	check(
		t,
		"maximum in flight",
		perSecond(v, func(s *secondOf) int64 { return s.most }),
		map[int64]int64{100: 100, 101: 1, 102: 1},
	)
	check(t, "inbound", perSecond(r.stats.Inbound(), pass), map[int64]int64{100: 100})
}

func TestLateSpansAreRejected(t *testing.T) {
	r := receive(t, Options{Tolerance: 10 * time.Second}, second(100), time.Time{})
	for _, tc := range []struct {
		span            sent
		rejected        int
		counted         int64
		late, truncated int64
	}{
		{at(1, 89.0, 89.5), 0, 1, 0, 0}, // a second more than the tolerance, for its way here
		{at(2, 88.0, 88.9), 1, 1, 1, 0},
		{at(3, 80.0, 95.0), 0, 2, 1, 1}, // it ended in an open second
		{at(4, 109.0, 110.0), 0, 3, 1, 1},
		{at(5, 109.0, 110.1), 1, 3, 1, 1}, // from the future
	} {
		if got := r.send(t, 100, tc.span); got.spans != tc.rejected {
			t.Errorf("span %d: %d rejected (%s), want %d", tc.span.id, got.spans, got.why, tc.rejected)
		}
		if c := r.counts; c[counted] != tc.counted || c[late] != tc.late || c[truncated] != tc.truncated {
			t.Errorf(
				"span %d: %+v, want %d counted, %d late, %d truncated",
				tc.span.id,
				c,
				tc.counted,
				tc.late,
				tc.truncated,
			)
		}
	}
	if err := r.advance(second(130)); err != nil {
		t.Fatal(err)
	}
	v := r.stats.Resource("shop: GET /cart").View()
	check(t, "passed", perSecond(v, pass), map[int64]int64{89: 2, 109: 1})
	check(t, "completed", perSecond(v, complete), map[int64]int64{89: 1, 95: 1, 110: 1})
	if rt := v.Snapshot(nil).Total.RTMax; rt != 15*time.Second {
		t.Errorf("the maximum is %v, want 15s: a truncated call keeps its duration", rt)
	}
}

func TestDuplicatesCountOnce(t *testing.T) {
	r := receive(t, Options{}, second(0), time.Time{})
	span := at(1, 0.1, 0.2)
	for _, now := range []float64{1, 2, 31, 90} { // at the end it would be late
		if not := r.send(t, now, span, span); not.spans != 0 {
			t.Errorf("at %v s: %s", now, not.why)
		}
	}
	if c := r.counts; c[counted] != 1 || c[duplicate] != 7 || c[late] != 0 {
		t.Errorf("%+v, want 1 counted and 7 duplicates", c)
	}
	other := at(2, 80.1, 80.2)
	r.send(t, 90, other)
	if not := r.send(t, 300, span); not.spans != 1 { // forgotten, and late
		t.Errorf("after 300 s %d are rejected, want 1", not.spans)
	}
	if n := r.seen.len(); n != 0 { // a late span is not remembered
		t.Errorf("%d are remembered after 300 s, want none", n)
	}
}

// The identity of a span consists of its trace ID, its span ID, its service and its kind.
func TestIdentityOfSpans(t *testing.T) {
	first := at(1, 0.1, 0.2)
	for what, tc := range map[string]struct {
		change    func(*sent)
		duplicate bool
	}{
		"the same":                 {func(*sent) {}, true},
		"other attributes":         {func(s *sent) { s.attributes, s.name, s.failed = nil, "other", true }, true},
		"a client":                 {func(s *sent) { s.kind = kindClient }, false},
		"a consumer":               {func(s *sent) { s.kind = kindConsumer }, false},
		"another service":          {func(s *sent) { s.service = "proxy" }, false},
		"no service":               {func(s *sent) { s.service = "" }, false},
		"another trace and span":   {func(s *sent) { s.id = 2 }, false},
		"a client of one service":  {func(s *sent) { s.kind, s.service = kindClient, "web" }, false},
		"a service with a long id": {func(s *sent) { s.service = "shop\x00" }, false},
	} {
		r := receive(t, Options{}, second(0), time.Time{})
		second := first
		tc.change(&second)
		r.send(t, 1, first)
		r.send(t, 1, second, second)
		want := counts{counted: 2, duplicate: 1}
		if tc.duplicate {
			want = counts{counted: 1, duplicate: 2}
		}
		if r.counts != want {
			t.Errorf("%s: %+v, want %+v", what, r.counts, want)
		}
	}
}

// A span of another service does not hide a span of the counted service with the same IDs.
func TestIdentityWithOneService(t *testing.T) {
	r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
	client := at(1, 0.1, 0.2)
	client.kind, client.service = kindClient, "web"
	r.send(t, 1, client, at(1, 0.1, 0.2))
	if want := (counts{counted: 1, otherService: 1}); r.counts != want {
		t.Errorf("%+v, want %+v", r.counts, want)
	}
}

// Only counted spans are remembered. A late span that is sent twice is late twice, and so is a span from the future.
func TestRejectedSpansAreNotRemembered(t *testing.T) {
	r := receive(t, Options{}, second(100), time.Time{})
	r.send(t, 100, at(1, 10, 11), at(1, 10, 11), at(2, 200, 201), at(2, 200, 201))
	if want := (counts{late: 2, future: 2}); r.counts != want || r.seen.len() != 0 {
		t.Errorf("%+v, %d remembered, want %+v and none", r.counts, r.seen.len(), want)
	}
	r.send(t, 200, at(2, 200, 201)) // no longer from the future
	if r.counts[counted] != 1 {
		t.Errorf("%+v, want one counted", r.counts)
	}
}

// A request counts completely or not at all, so its sender can repeat it.
func TestFullTableRefusesWholeRequests(t *testing.T) {
	r := receive(t, Options{MaxSpans: 3}, second(0), time.Time{})
	r.send(t, 0, at(1, 0, 0.1), at(2, 0, 0.1))
	var b batch
	if err := b.protobuf(toProtobuf(at(3, 0, 0.1), at(4, 0, 0.1))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.take(&b, second(1)); !errors.Is(err, errFull) {
		t.Errorf("%v, want %v", err, errFull)
	}
	if r.counts != (counts{counted: 2}) {
		t.Errorf("%+v, want 2 counted and nothing else", r.counts)
	}
	if not := r.send(t, 150, at(3, 149, 149.1), at(4, 149, 149.1)); not.spans != 0 || r.counts[counted] != 4 {
		t.Errorf("with capacity: %+v, %s", r.counts, not.why)
	}
}

func TestSampledSpans(t *testing.T) {
	r := receive(t, Options{}, second(0), time.Time{})
	for i := range 300 {
		s := at(uint64(i+1), 1.1, 1.2)
		s.state = "vendor=1,ot=th:5555555555556;rv:abcdef" // two in three are kept: each represents 1.5 calls
		r.send(t, 2, s)
	}
	r.send(t, 2, at(1000, 1.1, 1.2))
	if err := r.advance(second(40)); err != nil {
		t.Fatal(err)
	}
	check(t, "passed", perSecond(r.stats.Resource("shop: GET /cart").View(), pass), map[int64]int64{1: 451})
	if c := r.counts; c[sampled] != 300 || c[estimated] != 450 || c[counted] != 301 {
		t.Errorf("%+v, want 300 sampled of 301, for 450 calls", c)
	}
}

func TestWeight(t *testing.T) {
	for state, want := range map[string]float64{
		"": 1, "ot=th:0": 1, "ot=th:8": 2, "ot=th:c": 4, "a=b , ot=rv:1;th:c": 4, "ot=th:fffff": 1 << 20,
		// Invalid thresholds, and one with an absurd weight.
		"ot=th:": 1, "ot=th:x": 1, "ot=th:123456789abcdef": 1, "ot=th:ffffffffffffff": 1, "xot=th:8": 1,
		"ot=": 1, "=": 1, ",,;": 1,
	} {
		if got, _ := weight([]byte(state)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", state, got, want)
		}
	}
}

// Spans of seconds that the previous process logged are late: these seconds do not change.
func TestSecondsOfThePreviousProcess(t *testing.T) {
	r := receive(t, Options{}, second(100), second(95))
	not := r.send(t, 100, at(1, 94, 95.5), at(2, 95.1, 95.9), at(3, 95.5, 96.5), at(4, 97, 98))
	if not.spans != 2 || r.counts[truncated] != 1 {
		t.Errorf("%d rejected, %d truncated; want 2 and 1", not.spans, r.counts[truncated])
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	check(t, "passed", perSecond(r.stats.Inbound(), pass), map[int64]int64{96: 1, 97: 1})
}

// Each span passes in the second of its start and completes in the second of its end, in any order, with any delay, and
// with repetitions.
func TestOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := receive(t, Options{}, second(0), time.Time{})
	passed, completed := map[int64]int64{}, map[int64]int64{}
	type sending struct {
		at   float64
		span sent
	}
	var all []sending
	for i := range 3000 {
		start := rnd.Float64() * 50
		duration := rnd.ExpFloat64() * 2
		s := at(uint64(i+1), start, start+duration)
		passed[s.start.Unix()-epochOfTests.Unix()]++
		completed[s.end.Unix()-epochOfTests.Unix()]++
		for range 1 + rnd.IntN(2) {
			all = append(all, sending{start + duration + rnd.Float64()*10, s})
		}
	}
	for now := 0.0; now < 90; now += 0.5 {
		for _, x := range all {
			if x.at >= now && x.at < now+0.5 {
				r.send(t, now+0.5, x.span)
			}
		}
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	if c := r.counts; c[counted] != 3000 || int(c[counted]+c[duplicate]) != len(all) {
		t.Fatalf("%+v of %d", c, len(all))
	}
	v := r.stats.Inbound()
	check(t, "passed", perSecond(v, pass), passed)
	check(t, "completed", perSecond(v, complete), completed)
}

func TestOneServiceOfMany(t *testing.T) {
	r := receive(t, Options{Service: "shop"}, second(0), time.Time{})
	mail := at(2, 1, 1.5)
	mail.service = "mail"
	if not := r.send(t, 2, at(1, 1, 1.5), mail); not.spans != 0 {
		t.Error(not.why)
	}
	if err := r.advance(second(40)); err != nil {
		t.Fatal(err)
	}
	check(t, "passed", perSecond(r.stats.Resource("GET /cart").View(), pass), map[int64]int64{1: 1})
	if r.counts[otherService] != 1 {
		t.Errorf("%+v, want one of another service", r.counts)
	}
}
