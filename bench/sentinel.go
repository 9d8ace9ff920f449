package bench

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/stat"
	"github.com/alibaba/sentinel-golang/util"
)

// InitSentinel initializes sentinel-golang's api for the process. Its own log goes to dir instead of the home
// directory. The metric log and the collectors of system metrics are off, so nothing runs in the background of a
// benchmark.
func InitSentinel(dir string) error {
	c := config.NewDefaultConfig()
	c.Sentinel.Log.Dir = dir
	c.Sentinel.Log.Metric.FlushIntervalSec = 0
	c.Sentinel.Stat.System = config.SystemStatConfig{}
	return api.InitWithConfig(c)
}

// newSentinelNode records the same data as Sentinel's statistic slot, directly into a node. A node reads the clock
// itself, four times per call, but it never uses these readings for the response time, which the caller passes in. A
// node has one ring of 10 s, and no histogram.
func newSentinelNode(names []string) (Recorder, error) {
	nodes := sentinelNodes(names)
	return Recorder{
		Call: func(i int) { sentinelCall(nodes[i], 0) },
		Took: func(i int, rt time.Duration) { sentinelCall(nodes[i], rt.Milliseconds()) },
	}, nil
}

func sentinelNodes(names []string) []*stat.ResourceNode {
	nodes := make([]*stat.ResourceNode, len(names))
	for i, name := range names {
		nodes[i] = stat.NewResourceNode(name, base.ResTypeCommon)
	}
	return nodes
}

func sentinelCall(n *stat.ResourceNode, rt int64) {
	n.IncreaseConcurrency()
	n.AddCount(base.MetricEventPass, 1)
	n.AddCount(base.MetricEventRt, rt)
	n.AddCount(base.MetricEventComplete, 1)
	n.DecreaseConcurrency()
}

// newSentinelNodeCached is newSentinelNode with a clock like the one that Sentinel's option useCacheTime installs: a
// variable that a goroutine sets every millisecond. Timing the call is then nearly free, with a resolution of a
// millisecond. Sentinel's own cached clock cannot be uninstalled, so newSentinelNodeCached uses this replacement.
func newSentinelNodeCached(names []string) (Recorder, error) {
	nodes := sentinelNodes(names)
	clock := startCachedClock()
	util.SetClock(clock)
	return Recorder{
		Call: func(i int) {
			start := util.CurrentTimeMillis()
			n := nodes[i]
			n.IncreaseConcurrency()
			n.AddCount(base.MetricEventPass, 1)
			n.AddCount(base.MetricEventRt, int64(util.CurrentTimeMillis()-start))
			n.AddCount(base.MetricEventComplete, 1)
			n.DecreaseConcurrency()
		},
		Close: func() {
			util.SetClock(util.NewRealClock())
			close(clock.stop)
		},
	}, nil
}

// cachedClock is a clock for Sentinel that reads the milliseconds from memory.
type cachedClock struct {
	util.RealClock
	ms   atomic.Uint64
	stop chan struct{}
}

func startCachedClock() *cachedClock {
	c := &cachedClock{stop: make(chan struct{})}
	c.ms.Store(c.RealClock.CurrentTimeMillis())
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.ms.Store(c.RealClock.CurrentTimeMillis())
			case <-c.stop:
				return
			}
		}
	}()
	return c
}

// CurrentTimeMillis returns the Unix time in milliseconds, with a delay of up to a millisecond.
func (c *cachedClock) CurrentTimeMillis() uint64 { return c.ms.Load() }

// newSentinelEntry uses the api of services: Entry and Exit, without rules. Sentinel also counts each call with
// client_golang, in a counter by resource and result.
func newSentinelEntry(names []string) (Recorder, error) {
	return sentinelEntries(names)
}

// newSentinelInbound is newSentinelEntry for inbound calls. Sentinel counts these a second time, for the whole process.
func newSentinelInbound(names []string) (Recorder, error) {
	return sentinelEntries(names, api.WithTrafficType(base.Inbound))
}

func sentinelEntries(names []string, options ...api.EntryOption) (Recorder, error) {
	for _, name := range names {
		e, blocked := api.Entry(name, options...)
		if blocked != nil {
			return Recorder{}, fmt.Errorf("bench: sentinel blocked %q: %w", name, blocked)
		}
		e.Exit()
	}
	return Recorder{Call: func(i int) {
		e, blocked := api.Entry(names[i], options...)
		if blocked != nil {
			panic(blocked)
		}
		e.Exit()
	}}, nil
}
