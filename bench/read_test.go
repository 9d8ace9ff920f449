package bench_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/stat"
	"github.com/zeromicro/go-zero/core/collection"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// leaves is the number of origins that call a resource. The resource is read as their sum.
const leaves = 100

// BenchmarkRead reads a window after new calls, including the reading of the clock.
func BenchmarkRead(b *testing.B) {
	b.Run("qps/windowstat", func(b *testing.B) {
		read(b, newResource(b).PassQPS)
	})
	b.Run("qps/windowstat-leaf", func(b *testing.B) {
		v, line := newLeaf(b)
		read(b, func() float64 { return v.PassQPS(line.Now()) })
	})
	b.Run("qps/windowstat-100-leaves", func(b *testing.B) {
		read(b, newCalled(b).PassQPS)
	})
	b.Run("qps/sentinel-golang-node", func(b *testing.B) {
		n := newSentinelNode()
		read(b, func() float64 { return n.GetQPS(base.MetricEventPass) })
	})
	b.Run("qps/go-zero", func(b *testing.B) {
		type bucket = collection.Bucket[int64]
		w := collection.NewRollingWindow[int64](func() *bucket { return new(bucket) }, 2, 500*time.Millisecond)
		w.Add(1)
		read(b, func() float64 {
			var calls int64
			w.Reduce(func(c *bucket) { calls += c.Count })
			return float64(calls)
		})
	})
	b.Run("qps/fixed-window", func(b *testing.B) { readSimple(b, bench.NewFixedWindow()) })
	b.Run("qps/sentinel-ring", func(b *testing.B) { readSimple(b, bench.NewSentinelRing()) })
	b.Run("qps/sub-window-list", func(b *testing.B) { readSimple(b, bench.NewSubWindowList()) })
	b.Run("qps/second-map", func(b *testing.B) { readSimple(b, bench.NewSecondMap()) })

	b.Run("average/windowstat", func(b *testing.B) {
		r := newResource(b)
		read(b, func() float64 { return r.Window().AvgRT().Seconds() })
	})
	b.Run("average/windowstat-leaf", func(b *testing.B) {
		v, line := newLeaf(b)
		read(b, func() float64 { return v.Window(line.Now()).AvgRT().Seconds() })
	})
	b.Run("average/windowstat-100-leaves", func(b *testing.B) {
		r := newCalled(b)
		read(b, func() float64 { return r.Window().AvgRT().Seconds() })
	})
	b.Run("average/sentinel-golang-node", func(b *testing.B) { read(b, newSentinelNode().AvgRT) })
	b.Run("minute/windowstat", func(b *testing.B) {
		r := newResource(b)
		read(b, func() float64 { return float64(r.View().Minute().Pass) })
	})
	b.Run("snapshot-with-histogram/windowstat", func(b *testing.B) {
		r := newResource(b)
		var h node.Histogram
		read(b, func() float64 { return float64(r.Snapshot(&h).Total.Pass) })
	})
}

func read(b *testing.B, f func() float64) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

func readSimple(b *testing.B, w interface {
	Enter(now time.Duration)
	Exit(now, rt time.Duration)
	Sum(now time.Duration) bench.Cell
},
) {
	b.Helper()
	for range 100 {
		w.Enter(bench.Now())
		w.Exit(bench.Now(), time.Millisecond)
	}
	read(b, func() float64 { return float64(w.Sum(bench.Now()).Pass) })
}

func newResource(b *testing.B) *collector.Resource {
	b.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := c.Resource("read")
	for range 100 {
		e := r.Enter()
		e.Exit(nil)
	}
	return r
}

// newCalled returns a resource that leaves origins call, each as often as newResource is called.
func newCalled(b *testing.B) *collector.Resource {
	b.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range leaves * 100 {
		_, e, err := c.Enter(context.Background(), "read", collector.Origin(strconv.Itoa(i%leaves)))
		if err != nil {
			b.Fatal(err)
		}
		e.Exit(nil)
	}
	if n := c.Health().Leaves; n != leaves {
		b.Fatalf("there are %d leaves, want %d", n, leaves)
	}
	return c.Resource("read")
}

// newLeaf returns a view of one statistic, the minimum of a resource, and its clock.
func newLeaf(b *testing.B) (*node.View, *leap.Timeline) {
	b.Helper()
	line := leap.NewTimeline(leap.Clock{})
	shape, err := node.NewConfig(line, node.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, v := node.New(shape, line.Now()), node.NewView(shape, line.Now())
	v.Add(s)
	for range 100 {
		call := s.Enter(line.Now(), 1)
		call.End(false, 0)
	}
	return v, line
}

func newSentinelNode() *stat.ResourceNode {
	n := stat.NewResourceNode("read", base.ResTypeCommon)
	for range 100 {
		n.AddCount(base.MetricEventPass, 1)
		n.AddCount(base.MetricEventRt, 20)
		n.AddCount(base.MetricEventComplete, 1)
	}
	return n
}
