package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// values holds the values of one metric by resource and Unix second.
type values map[string]map[int64]float64

// checkSamples compares the selected samples with the expected ones. Each expected second must be found once, and no
// others; seconds from end on are not checked. It returns the number of samples.
func checkSamples(t *testing.T, s *server, selector string, want values, end int64) (n int) {
	t.Helper()
	n, wrong := eventually(t, s, selector, end, func() values { return want })
	if len(wrong) > 0 {
		t.Errorf("%s: %s is wrong in %d places:\n%s", s.name, selector, len(wrong),
			strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
	return n
}

// eventually returns the final result of [compareSamples]. If the newest second is visible, others may be missing: a
// server stores data from several connections, or in several parts, in any order. So eventually repeats the query until
// nothing is wrong, or until the deadline of the wait for the newest second.
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

// compareSamples returns the differences for [checkSamples].
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
				continue // the resource began since
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

// show makes VictoriaMetrics show all stored samples. Without this call they become visible after some seconds, in any
// order.
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

// await waits until a server has the second before end of the selected series. VictoriaMetrics shows a response before
// it has stored all of it. For VictoriaMetrics, the first caller that waits for this end also waits for a second
// without new samples, but at most three seconds.
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
				t.Fatalf("%s: the newest second of %s is %d; it should have come to %d",
					s.name, selector, newest, end-1)
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
