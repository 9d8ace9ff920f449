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

// What a connector that counts at arrival makes three seconds of: 99 spans of one second, handed over 3, 8 and 13 seconds later.
func TestSpansCountInTheSecondsInWhichTheyWere(t *testing.T) {
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
	check(t, "most in flight", perSecond(v, func(s *secondOf) int64 { return s.most }), map[int64]int64{100: 100, 101: 1, 102: 1})
	check(t, "inbound", perSecond(r.stats.Inbound(), pass), map[int64]int64{100: 100})
}

func TestLateSpansAreToldAndNotCounted(t *testing.T) {
	r := receive(t, Options{Tolerance: 10 * time.Second}, second(100), time.Time{})
	for _, tc := range []struct {
		span            sent
		rejected        int
		counted         int64
		late, truncated int64
	}{
		{at(1, 89.0, 89.5), 0, 1, 0, 0}, // a second more than the tolerance: it may have been on its way
		{at(2, 88.0, 88.9), 1, 1, 1, 0},
		{at(3, 80.0, 95.0), 0, 2, 1, 1}, // it ended in a second that is open
		{at(4, 109.0, 110.0), 0, 3, 1, 1},
		{at(5, 109.0, 110.1), 1, 3, 1, 1}, // from the future
	} {
		if got := r.send(t, 100, tc.span); got.spans != tc.rejected {
			t.Errorf("span %d: %d rejected (%s), want %d", tc.span.id, got.spans, got.why, tc.rejected)
		}
		if c := r.counts; c[counted] != tc.counted || c[late] != tc.late || c[truncated] != tc.truncated {
			t.Errorf("span %d: %+v, want %d counted, %d late, %d truncated", tc.span.id, c, tc.counted, tc.late, tc.truncated)
		}
	}
	if err := r.advance(second(130)); err != nil {
		t.Fatal(err)
	}
	v := r.stats.Resource("shop: GET /cart").View()
	check(t, "passed", perSecond(v, pass), map[int64]int64{89: 2, 109: 1})
	check(t, "completed", perSecond(v, complete), map[int64]int64{89: 1, 95: 1, 110: 1})
	if rt := v.Snapshot(nil).Total.RTMax; rt != 15*time.Second {
		t.Errorf("the longest took %v, want 15s: a truncated call keeps its duration", rt)
	}
}

func TestASpanThatComesTwiceCountsOnce(t *testing.T) {
	r := receive(t, Options{}, second(0), time.Time{})
	span := at(1, 0.1, 0.2)
	for _, now := range []float64{1, 2, 31, 90} { // also when it would be late
		if not := r.send(t, now, span, span); not.spans != 0 {
			t.Errorf("at %v s: %s", now, not.why)
		}
	}
	if c := r.counts; c[counted] != 1 || c[duplicate] != 7 || c[late] != 0 {
		t.Errorf("%+v, want 1 counted and 7 duplicates", c)
	}
	other := at(2, 80.1, 80.2)
	r.send(t, 90, other)
	if not := r.send(t, 300, span); not.spans != 1 { // it is forgotten, and late
		t.Errorf("after 300 s %d are rejected, want 1", not.spans)
	}
	if n := len(r.seen.sets[0]) + len(r.seen.sets[1]) + len(r.seen.sets[2]); n != 1 {
		t.Errorf("%d are remembered after 300 s, want 1", n)
	}
}

func TestRequestsAreRefusedWholeWhenThereIsNoRoom(t *testing.T) {
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
		t.Errorf("when there is room: %+v, %s", r.counts, not.why)
	}
}

func TestThresholdsWeighSpans(t *testing.T) {
	r := receive(t, Options{}, second(0), time.Time{})
	for i := range 300 {
		s := at(uint64(i+1), 1.1, 1.2)
		s.state = "vendor=1,ot=th:5555555555556;rv:abcdef" // two in three are kept: each stands for 1.5
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
		// What is no threshold, or one that nobody means.
		"ot=th:": 1, "ot=th:x": 1, "ot=th:123456789abcdef": 1, "ot=th:ffffffffffffff": 1, "xot=th:8": 1, "ot=": 1, "=": 1, ",,;": 1,
	} {
		if got, _ := weight([]byte(state)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", state, got, want)
		}
	}
}

// What a process before this one has logged is not counted again, nor is anything put into its seconds.
func TestSecondsOfThePreviousProcessAreNotTouched(t *testing.T) {
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

// Conservation: whatever the order, the delays and the repetitions, each span passes in the second of its begin and completes in that
// of its end.
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
