package node_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// callFor runs the given number of goroutines, which make calls for the given time. Each goroutine uses one statistic.
// The first goroutine uses the first statistic, the second one uses the second statistic, and so on. If there are more
// goroutines than statistics, the next goroutine uses the first statistic again. callFor returns the elapsed
// nanoseconds divided by the number of all calls.
func callFor(line *leap.Timeline, length time.Duration, goroutines int, stats ...*node.Statistic) float64 {
	var wg sync.WaitGroup
	calls := make([]int64, goroutines)
	begin := line.Now()
	for g := range goroutines {
		wg.Go(func() {
			s, n := stats[g%len(stats)], int64(0)
			for now := begin; now.Sub(begin) < length; n++ {
				c := s.Enter(line.Now(), 1)
				now = line.Now()
				c.Exit(now, false, 0)
			}
			calls[g] = n
		})
	}
	wg.Wait()
	took := line.Now().Sub(begin)
	var sum int64
	for _, n := range calls {
		sum += n
	}
	return float64(took.Nanoseconds()) / float64(sum)
}

// BenchmarkFresh measures complete calls that two goroutines make to one statistic. Each round uses a new statistic,
// because the first contention for a statistic determines its stripes for the rest of its life. For comparison, each
// round also measures the same calls to two statistics, one for each goroutine. If fewer or more processors are
// available, both results change.
func BenchmarkFresh(b *testing.B) {
	const fresh, each = 24, 50 * time.Millisecond
	var shared, times []float64
	one := 0
	for b.Loop() {
		for range fresh {
			line, s, _ := newReal(b)
			_, s1, _ := newReal(b)
			_, s2, _ := newReal(b)
			before := callFor(line, each/2, 2, s1, s2)
			took := callFor(line, each, 2, s)
			apart := (before + callFor(line, each/2, 2, s1, s2)) / 2
			shared, times = append(shared, took), append(times, took/apart)
			if s.Stripes() == 1 {
				one++
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, m := range []struct {
		unit   string
		values []float64
	}{{"ns", shared}, {"times-apart", times}} {
		slices.Sort(m.values)
		last := len(m.values) - 1
		b.ReportMetric(m.values[0], "min-"+m.unit)
		b.ReportMetric(m.values[last/2], "median-"+m.unit)
		b.ReportMetric(m.values[last], "max-"+m.unit)
	}
	b.ReportMetric(100*float64(one)/float64(len(shared)), "%-one-stripe")
}

// BenchmarkHot measures the time of a call and the memory of a statistic while one goroutine per processor calls the
// same statistic. The benchmark also runs with more processors than this machine has.
func BenchmarkHot(b *testing.B) {
	for _, processors := range []int{2, 8, 64} {
		b.Run(fmt.Sprint(processors), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			const statistics = 4
			var bytes, stripes uint64
			var took float64
			for b.Loop() {
				line, _, _ := newReal(b)
				config, err := node.NewConfig(line, node.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var list [statistics]*node.Statistic
				var before uint64
				for i := range list {
					if i == 1 { // the calls to list[0] also allocate memory for goroutines, so measure from list[1] on
						before = heap()
					}
					list[i] = node.New(config, line.Now())
					took += callFor(line, 1200*time.Millisecond, processors, list[i])
				}
				bytes += (heap() - before) / (statistics - 1)
				for _, s := range list {
					stripes += uint64(s.Stripes())
				}
			}
			n := statistics * float64(b.N)
			b.ReportMetric(took/n, "ns/op")
			b.ReportMetric(float64(bytes)/float64(b.N), "B")
			b.ReportMetric(float64(stripes)/n, "stripes")
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkTurn measures how long the turn of a bucket takes. Writers wait during this time. Half of the turns also
// seal a second.
func BenchmarkTurn(b *testing.B) {
	for _, processors := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(processors), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			r := newRig(b, node.Options{})
			for processors > 1 {
				before := r.Stripes()
				if r.Grow(); r.Stripes() == before {
					break
				}
			}
			stripes := r.Stripes()
			var took []time.Duration
			now := time.Duration(0)
			for b.Loop() {
				var wg sync.WaitGroup
				for range 3 * stripes { // enough calls to use nearly all stripes
					wg.Go(func() {
						c := r.Enter(now, 1)
						c.Exit(now+ms, false, 0)
					})
				}
				wg.Wait()
				now += 500 * ms
				at := r.at(now)
				begin := time.Now()
				r.Statistic.Seal(at)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[len(took)/4]), "bucket-ns")
			b.ReportMetric(float64(took[len(took)*3/4]), "second-ns")
			b.ReportMetric(float64(stripes), "stripes")
		})
	}
}
