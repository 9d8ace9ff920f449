package verify

import (
	"fmt"
	"strings"
	"testing"
)

// deduplicate returns the points that VictoriaMetrics keeps with -dedup.minScrapeInterval=N: for each k the last point
// that is later than (k-1)*N and not later than k*N.
func deduplicate(points [][2]any, n int64) (kept [][2]any) {
	end := func(p [2]any) int64 { return (int64(p[0].(float64)*1000) + n*1000 - 1) / (n * 1000) }
	for i, p := range points {
		if i == len(points)-1 || end(points[i+1]) != end(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func TestDeduplicationIsNoted(t *testing.T) {
	for _, n := range []int64{2, 5, 15, 30, 60} {
		for _, size := range []int{chunkSize, 40} { // a chunk of hours, or of ten seconds
			t.Run(fmt.Sprintf("%d s in chunks of %d", n, size), func(t *testing.T) {
				r := newFixture(t)
				r.interval = n
				c := newComparison(r.gap, r.options)
				c.chunkSize = size
				if err := c.prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				report, err := c.run(t.Context())
				if err != nil || report.Missing == 0 || report.Different+report.Extra != 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				want := fmt.Sprintf("-dedup.minScrapeInterval=%ds", n)
				if !strings.Contains(strings.Join(report.Notes, "\n"), want) {
					t.Errorf("no %q in %q, %d of %d missing", want, report.Notes, report.Missing, report.Seconds)
				}
			})
		}
	}
}

func TestOtherGapsAreNotNotedAsDeduplication(t *testing.T) {
	dropping := func(match func(since, at int64) bool) func(r *fixture) {
		return func(r *fixture) { r.drop(func(_ string, at int64) bool { return match(at-r.begin, at) }) }
	}
	for name, change := range map[string]func(r *fixture){
		"nothing is missing":             func(*fixture) {},
		"deduplication by seconds":       func(r *fixture) { r.interval = 1 },
		"most of the range is missing":   dropping(func(since, _ int64) bool { return since > 60 }),
		"one second of each scrape":      dropping(func(_, at int64) bool { return at%15 != 4 }),
		"less than half is deduplicated": dropping(func(since, at int64) bool { return since < 170 && at%15 != 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			change(r)
			report, err := Check(t.Context(), r.gap, r.options)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.Join(report.Notes, "\n"), "-dedup.minScrapeInterval") {
				t.Errorf("%q, %d of %d seconds missing", report.Notes, report.Missing, report.Seconds)
			}
		})
	}
}

func TestInterval(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds []int64
		logged  int64
		want    int64
	}{
		"none":                        {nil, 10, 0},
		"one":                         {[]int64{15}, 10, 0},
		"three intervals":             {[]int64{60, 15, 30, 45}, 60, 15},
		"two intervals":               {[]int64{15, 30, 45}, 50, 0},
		"half of the range":           {[]int64{15, 30, 45, 60}, 90, 0},
		"more than half of the range": {[]int64{15, 30, 45, 60}, 89, 15},
		"every second":                {[]int64{15, 16, 17, 18, 19, 20}, 6, 0},
		"not at multiples of 15":      {[]int64{16, 31, 46, 61, 76, 91}, 90, 0},
		"one more second":             {[]int64{15, 30, 37, 45, 60, 75, 90}, 90, 15},
		"two lengths":                 {[]int64{15, 30, 45, 60, 120, 180}, 165, 0},
	} {
		if got := interval(tc.seconds, tc.logged); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// If the query for the pattern fails, the comparison is complete, and a note states the failed check.
func TestDeduplicationThatCannotBeChecked(t *testing.T) {
	r := newFixture(t)
	c := newComparison(r.gap, r.options)
	if err := c.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.timeout = 0 // makes the next query fail
	c.report.Missing, c.report.Seconds, c.log = 1, 1, newLogSamples(runName)
	c.noteDeduplication(t.Context())
	report, err := c.finish(nil)
	const want = "cannot check the database for deduplication"
	if err != nil || !strings.Contains(strings.Join(report.Notes, "\n"), want) {
		t.Errorf("no %q in %q, %v", want, report.Notes, err)
	}
}
