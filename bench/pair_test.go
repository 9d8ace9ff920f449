package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
)

// BenchmarkPair reports the time of a call to a resource that two goroutines call concurrently. It uses many fresh
// resources, each with its own two goroutines, because the contention between two goroutines depends on where they run.
// Resources of windowstat and of a rival take turns.
func BenchmarkPair(b *testing.B) {
	const resources = 24
	rivals := bench.Rivals()
	rival := func(name string) bench.Rival {
		return rivals[slices.IndexFunc(rivals, func(r bench.Rival) bool { return r.Name == name })]
	}
	names := bench.Names(resources)
	for _, other := range []string{"sentinel-golang-entry", "victoriametrics-le"} {
		b.Run("windowstat/"+other, func(b *testing.B) {
			var t turns
			for b.Loop() {
				for i := range names {
					t.add(pair(b, rival("windowstat"), names[i:i+1]), pair(b, rival(other), names[i:i+1]))
				}
			}
			t.report(b)
			b.ReportMetric(slices.Max(t.ours)/median(t.other), "slowest-ratio")
			b.ReportMetric(slices.Min(t.ours), "min-ns")
			b.ReportMetric(slices.Max(t.ours), "max-ns")
			b.ReportMetric(slices.Min(t.other), "other-min-ns")
			b.ReportMetric(slices.Max(t.other), "other-max-ns")
		})
	}
}

// pair returns the nanoseconds per call while two goroutines call: the time divided by all calls. It discards a first
// stretch. The fastest of the other stretches counts, because no other work on the machine disturbed it.
func pair(b *testing.B, r bench.Rival, name []string) float64 {
	b.Helper()
	const stretches, length = 4, 12 * time.Millisecond
	rec, err := r.New(name)
	if err != nil {
		b.Fatal(err)
	}
	two := newCrew(2)
	b.Cleanup(two.end) // not before, or the next two get their stacks
	var best float64
	for stretch := range stretches {
		var calls [2]int
		end := bench.Now() + length
		two.do(func(i int) { calls[i] = callFor(end, rec.Call) })
		if ns := float64(length) / float64(calls[0]+calls[1]); stretch == 1 || stretch > 1 && ns < best {
			best = ns
		}
	}
	if rec.Close != nil {
		rec.Close()
	}
	return best
}
