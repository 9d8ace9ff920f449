package seconds

import (
	"math"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// stillFor is how many seconds before an idle one must have been idle, too, until a series stops.
const stillFor = 60

// still knows in which seconds a resource is still: nothing happened in the second nor in the minute before it, by the names of
// the seconds, and nothing was in flight. It is the last second that was not idle, or the one before the first that is known. Of
// a still second only the metrics with [table.Second].Always are sent. Which seconds are still depends on what happened before
// them and on nothing else, so it is the same for every reader, at any time.
type still int64

// unknown is a still without a past: the next second begins one.
const unknown still = math.MinInt64

// see takes notice of a second, and reports whether it is still. Seconds must ascend.
func (s *still) see(m *node.MetricNode) bool {
	at := m.Start.Unix()
	if *s == unknown {
		*s = still(at - 1)
	}
	if !m.Idle() {
		*s = max(*s, still(at))
	}
	return s.is(at)
}

// is reports whether an idle second is still.
func (s *still) is(unix int64) bool { return unix-stillFor > int64(*s) }

// told appends the seconds that are not still. If that is all of them it returns those, and appends nothing.
func (s *still) told(dst, all []node.MetricNode) []node.MetricNode {
	for i := range all {
		if !s.see(&all[i]) {
			continue
		}
		dst = append(dst, all[:i]...)
		for _, m := range all[i+1:] {
			if !s.see(&m) {
				dst = append(dst, m)
			}
		}
		return dst
	}
	return all
}

// stillBefore is the past of a view at the second with this index. A second without a name was not handed out, and is passed
// over here as well.
func stillBefore(c *collector.Collector, v *node.View, index int64) still {
	for {
		index = v.LastActive(index)
		if index < v.Since() {
			return still(v.Began().Unix() - 1)
		}
		if name, ok := c.Timeline().Name(index); ok {
			return still(name.Unix())
		}
	}
}
