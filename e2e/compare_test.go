package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// values are what the seconds of resources have of one metric: by resource, and then by Unix second.
type values map[string]map[int64]float64

// checkSamples compares the samples that a range selector selects with what they must be: each second is there once, and
// there are no others, but for those from the second end on, which are not looked at. It returns how many samples there are.
func checkSamples(t *testing.T, s *server, selector string, want values, end int64) (n int) {
	t.Helper()
	n, wrong := eventually(t, s, selector, end, func() values { return want })
	if len(wrong) > 0 {
		t.Errorf("%s: %s is wrong in %d places:\n%s", s.name, selector, len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
	return n
}

// eventually is what [compareSamples] finds in the end. That the newest second is there does not say that all others are: a server stores
// what comes by several connections, or in several parts, in no order. So it is asked again until nothing is wrong, or until the deadline of
// who waited for the newest second.
func eventually(t *testing.T, s *server, selector string, end int64, want func() values) (n int, wrong []string) {
	t.Helper()
	for first := 0; ; {
		begin := time.Now()
		n, wrong = compareSamples(t, s, selector, want(), end)
		if len(wrong) == 0 && first > 0 {
			t.Logf("%s: %s was wrong in %d places at first", s.name, selector, first)
		}
		if len(wrong) == 0 || time.Now().After(s.comesUntil) {
			return n, wrong
		}
		first = max(first, len(wrong))
		time.Sleep(max(200*time.Millisecond, time.Since(begin)))
		s.show(t)
	}
}

// compareSamples is what [checkSamples] finds.
func compareSamples(t *testing.T, s *server, selector string, want values, end int64) (n int, wrong []string) {
	t.Helper()
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	held := map[string]bool{}
	for _, x := range s.query(t, selector) {
		resource := x.Metric["resource"]
		if held[resource] {
			complain("%s has several series", resource)
		}
		held[resource] = true
		if want[resource] == nil {
			if len(x.Values) > 0 && x.Values[0].at/1000 >= end {
				continue // it began since
			}
			complain("%s should not be there", resource)
		}
		times := map[int64]int{}
		for _, v := range x.Values {
			second := v.at / 1000
			if second >= end {
				continue
			}
			n++
			times[second]++
			if value, ok := want[resource][second]; !ok || v.value != value || v.at%1000 != 0 {
				complain("%s at %d ms is %v; it should be %v, there: %t", resource, v.at, v.value, value, ok)
			}
		}
		for second := range want[resource] {
			if times[second] != 1 {
				complain("%s has %d samples of second %d", resource, times[second], second)
			}
		}
	}
	for resource := range want {
		if !held[resource] {
			complain("%s is missing", resource)
		}
	}
	return n, wrong
}

// show has VictoriaMetrics show all that it has taken so far. By itself it does within some seconds, and not in the
// order in which it came.
func (s *server) show(t *testing.T) {
	t.Helper()
	stores := s.stores
	if len(stores) == 0 && s.isVictoria {
		stores = []*server{s}
	}
	for _, store := range stores {
		if _, err := store.get("/internal/force_flush", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until a server has the second before end of what a selector selects. VictoriaMetrics shows an answer while it still
// takes it: there the first to wait for this end waits, too, until nothing has come for a second, or three have passed.
func await(t *testing.T, s *server, selector string, end int64, deadline time.Time) {
	t.Helper()
	s.comesUntil = deadline
	samples, since, reached := 0, time.Now(), time.Time{}
	for ; ; time.Sleep(200 * time.Millisecond) {
		newest, n := int64(0), 0
		s.show(t)
		for _, x := range s.query(t, selector+"[5m]") {
			newest = max(newest, x.Values[len(x.Values)-1].at/1000)
			n += len(x.Values)
		}
		if n != samples {
			samples, since = n, time.Now()
		}
		switch {
		case newest < end-1:
			if time.Now().After(deadline) {
				t.Fatalf("%s: the newest second of %s is %d; it should have come to %d", s.name, selector, newest, end-1)
			}
			continue
		case reached.IsZero():
			reached = time.Now()
		}
		atOnce := !s.isVictoria && len(s.stores) == 0 || s.settled >= end
		if atOnce || time.Since(since) > time.Second || time.Since(reached) > 3*time.Second {
			s.settled = end
			return
		}
	}
}
