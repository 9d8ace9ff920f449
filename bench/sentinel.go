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

// InitSentinel prepares sentinel-golang's api for the process: its own log goes to dir instead of the home
// directory, and the metric log and the collectors of system metrics are off, so that nothing runs beside a benchmark.
func InitSentinel(dir string) error {
	c := config.NewDefaultConfig()
	c.Sentinel.Log.Dir = dir
	c.Sentinel.Log.Metric.FlushIntervalSec = 0
	c.Sentinel.Stat.System = config.SystemStatConfig{}
	return api.InitWithConfig(c)
}

// newSentinelNode records what Sentinel's statistic slot records, straight into a node. A node reads the clock by
// itself, four times for a call, but for none of them takes the response time from it: that is given. A node has one
// ring of 10 s, and no histogram.
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

// newSentinelNodeCached is newSentinelNode with the clock that Sentinel's option useCacheTime installs: a variable
// that a goroutine sets each millisecond. Timing the call is then nearly free, and as coarse as that. Sentinel's own
// cached clock cannot be taken out again, so this one stands in for it.
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

// cachedClock is a clock for Sentinel whose milliseconds are read from memory.
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

// CurrentTimeMillis is the Unix time in milliseconds, up to a millisecond late.
func (c *cachedClock) CurrentTimeMillis() uint64 { return c.ms.Load() }

// newSentinelEntry is the api that services use: Entry and Exit, with no rules loaded. Sentinel counts each call with
// client_golang on top, in a counter by resource and result.
func newSentinelEntry(names []string) (Recorder, error) {
	return sentinelEntries(names)
}

// newSentinelInbound is newSentinelEntry for inbound calls, which are counted for the whole process a second time.
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
