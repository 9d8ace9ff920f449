package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// deduplicate returns the points that VictoriaMetrics has with -dedup.minScrapeInterval=N: the last one that is later than (k-1)*N and not
// later than k*N, for each k.
func deduplicate(points [][2]any, n int64) (kept [][2]any) {
	end := func(p [2]any) int64 { return (int64(p[0].(float64)*1000) + n*1000 - 1) / (n * 1000) }
	for i, p := range points {
		if i == len(points)-1 || end(points[i+1]) != end(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func TestDeduplicationIsNamed(t *testing.T) {
	for _, n := range []int64{2, 5, 15, 30, 60} {
		for _, size := range []int{partSize, 40} { // of a part of the comparison: hours, or ten seconds
			t.Run(fmt.Sprintf("%d s in parts of %d", n, size), func(t *testing.T) {
				r := newReplica(t)
				r.interval = n
				c := newComparison(r.gap, r.options)
				c.partSize = size
				if err := c.find(t.Context()); err != nil {
					t.Fatal(err)
				}
				report, err := c.run(t.Context())
				if err != nil || report.Missing == 0 || report.Different+report.Extra != 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				if want := fmt.Sprintf("-dedup.minScrapeInterval=%ds", n); !strings.Contains(strings.Join(report.Notes, "\n"), want) {
					t.Errorf("no %q in %q, %d of %d seconds missing", want, report.Notes, report.Missing, report.Seconds)
				}
			})
		}
	}
}

func TestOtherGapsAreNotNamedDeduplication(t *testing.T) {
	for name, change := range map[string]func(r *replica){
		"nothing is missing":                  func(*replica) {},
		"deduplication by milliseconds":       func(r *replica) { r.interval = 1 },
		"most of the range is missing":        func(r *replica) { r.drop(func(_ string, at int64) bool { return at > r.begin+60 }) },
		"the first second of each scrape":     func(r *replica) { r.drop(func(_ string, at int64) bool { return at%15 != 4 }) },
		"a part of the range is deduplicated": func(r *replica) { r.drop(func(_ string, at int64) bool { return at < r.begin+170 && at%15 != 0 }) },
		"two intervals remain":                func(r *replica) { r.drop(func(_ string, at int64) bool { return at%180 != 0 }) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t)
			change(r)
			report, err := Check(t.Context(), r.gap, r.options)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, "-dedup.minScrapeInterval") }) {
				t.Errorf("%q, %d of %d seconds missing", report.Notes, report.Missing, report.Seconds)
			}
		})
	}
}

// A server that fails when it is asked for the pattern has answered all that was compared: the report says so, and is complete.
func TestDeduplicationThatCannotBeChecked(t *testing.T) {
	r := newReplica(t)
	r.interval = 15
	c := newComparison(r.gap, r.options)
	if err := c.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.timeout = 0 // of the further query
	c.report.Missing, c.report.Seconds, c.log = 1, 1, newExpected(runName)
	c.noteDeduplication(t.Context())
	if report, err := c.done(nil); err != nil || !strings.Contains(strings.Join(report.Notes, "\n"), "cannot check the database for deduplication") {
		t.Errorf("%q, %v", report.Notes, err)
	}
}
