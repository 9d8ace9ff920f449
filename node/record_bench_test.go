package node_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// busy returns a rig whose statistic has 100 calls in each of the given number of seconds. It also returns the time
// that it took to seal these seconds. Response times are around 20 ms.
func busy(tb testing.TB, seconds int) (r *rig, sealing time.Duration) {
	r = newRig(tb, node.Options{})
	random := rand.New(rand.NewPCG(3, 4))
	for i := range seconds {
		second := time.Duration(i) * time.Second
		for range 100 {
			rt := time.Duration(20e6 * math.Exp(0.5*random.NormFloat64()))
			r.call(second+time.Duration(random.IntN(700))*ms, min(rt, 299*ms), random.IntN(20) == 0)
		}
		r.at(second + time.Second)
		start := time.Now()
		r.Seal(second + time.Second)
		sealing += time.Since(start)
	}
	return r, sealing
}

// BenchmarkSealBusy measures the time to seal a second with 100 calls.
func BenchmarkSealBusy(b *testing.B) {
	_, sealing := busy(b, b.N)
	b.ReportMetric(float64(sealing)/float64(b.N), "ns/seal")
}

// BenchmarkReadBusy reads the history of a busy statistic.
func BenchmarkReadBusy(b *testing.B) {
	const seconds = 700
	r, _ := busy(b, seconds)
	now := time.Duration(seconds) * time.Second
	newest := r.zero + seconds - 1
	b.Run("minute", func(b *testing.B) {
		for b.Loop() {
			r.Minute(now)
		}
	})
	b.Run("last second", func(b *testing.B) {
		for b.Loop() {
			r.Second(newest)
		}
	})
	b.Run("any second of the minute", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			r.Second(newest - i*17%59)
		}
	})
	var dst []node.MetricNode
	b.Run("15 seconds", func(b *testing.B) {
		for b.Loop() {
			dst = r.view.AppendSeconds(dst[:0], newest-14, newest+1)
		}
	})
	b.Run("all seconds", func(b *testing.B) {
		for b.Loop() {
			dst = r.view.AppendSeconds(dst[:0], newest-598, newest+1)
		}
	})
	var h node.Histogram
	b.Run("histogram of the minute", func(b *testing.B) {
		for b.Loop() {
			r.Histogram(newest-58, newest+1, &h)
		}
	})
	b.Run("histogram of a second", func(b *testing.B) {
		for b.Loop() {
			r.Histogram(newest, newest+1, &h)
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			r.Snapshot(now, &h)
		}
	})
}
