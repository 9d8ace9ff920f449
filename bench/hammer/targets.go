package hammer

import (
	"fmt"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	sentinel "github.com/alibaba/sentinel-golang/core/stat/base"
	"github.com/alibaba/sentinel-golang/util"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Windowstat returns a resource of a collector that divides a second into the given number of buckets. One addition is
// a whole call, Enter and Exit. The hammer compares seconds as soon as they are sealed.
func Windowstat(buckets int) (Target, error) {
	c, err := collector.New(collector.Options{Windows: node.Options{SampleCount: buckets}})
	if err != nil {
		return Target{}, err
	}
	r, line := c.Resource("hammer"), c.Timeline()
	return Target{
		Name:   fmt.Sprintf("windowstat/%dx%v", buckets, time.Second/time.Duration(buckets)),
		Kinds:  []string{"pass", "complete"},
		Bucket: time.Second,
		Open:   func() int64 { return line.At(line.Now()).Index },
		Add: func() {
			e := r.Enter()
			e.Exit(nil)
		},
		Closed: func(from, to int64, take func(bucket int64, counts []int64)) {
			c.Seal()
			for second := from; second < to; second++ {
				if m, ok := r.View().Node().Second(second); ok {
					take(second, []int64{m.Pass, m.Complete})
				}
			}
		},
	}, nil
}

// Sentinel returns the ring of a resource in sentinel-golang, with the given number and length of buckets. One addition
// is one pass. A bucket is read half a ring after its end, so its last writer has finished.
func Sentinel(buckets int, length time.Duration) Target {
	ms := uint64(length.Milliseconds())
	ring := sentinel.NewBucketLeapArray(uint32(buckets), uint32(buckets)*uint32(ms))
	return Target{
		Name:   fmt.Sprintf("sentinel-golang/%dx%v", buckets, length),
		Kinds:  []string{"pass"},
		Bucket: length,
		Lag:    int64(buckets / 2),
		Open:   func() int64 { return int64(util.CurrentTimeMillis() / ms) },
		Add:    func() { ring.AddCount(base.MetricEventPass, 1) },
		Closed: func(from, to int64, take func(bucket int64, counts []int64)) {
			// Reading the ring this way turns no bucket.
			wanted := func(start uint64) bool { return int64(start/ms) >= from && int64(start/ms) < to }
			for _, b := range ring.ValuesConditional(util.CurrentTimeMillis(), wanted) {
				take(int64(b.BucketStart/ms),
					[]int64{b.Value.Load().(*sentinel.MetricBucket).Get(base.MetricEventPass)})
			}
		},
	}
}

// Window is implemented by the simple windows.
type Window interface {
	Enter(now time.Duration)
	Exit(now, rt time.Duration)
	Each(take func(index int64, c bench.Cell))
}

// Simple returns a simple window with buckets of the given length. A bucket is read after a lag of the given number of
// buckets.
func Simple(name string, w Window, length time.Duration, lag int64) Target {
	return Target{
		Name:   name,
		Kinds:  []string{"pass", "complete"},
		Bucket: length,
		Lag:    lag,
		Open:   func() int64 { return int64(bench.Now() / length) },
		Add: func() {
			w.Enter(bench.Now())
			w.Exit(bench.Now(), time.Millisecond)
		},
		Closed: func(from, to int64, take func(bucket int64, counts []int64)) {
			w.Each(func(index int64, c bench.Cell) {
				if index >= from && index < to {
					take(index, []int64{c.Pass, c.Complete})
				}
			})
		},
	}
}
