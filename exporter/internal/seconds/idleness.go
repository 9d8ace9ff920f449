package seconds

import (
	"math"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// idleLimit is the number of idle seconds after which further idle seconds are omitted.
const idleLimit = 60

// idleness decides which seconds of a resource are omitted. A second is omitted if it and the 60 seconds before it, by
// wall-clock name, had no events and no call in flight. An omitted second has samples only of metrics with
// [table.Second].Always.
//
// The value is the last second that was not idle, or the one before the first known second. It depends only on earlier
// seconds, so all consumers omit the same seconds at any time.
type idleness int64

// unknown is the idleness of a resource without a known past. The next second counts as one that follows activity.
const unknown idleness = math.MinInt64

// observe records a second and reports whether it is omitted. Seconds must ascend.
func (s *idleness) observe(m *node.MetricNode) bool {
	at := m.Start.Unix()
	if *s == unknown {
		*s = idleness(at - 1)
	}
	if !m.Idle() {
		*s = max(*s, idleness(at))
	}
	return s.suppressed(at)
}

// suppressed reports whether the second unix is omitted, provided that it is idle.
func (s *idleness) suppressed(unix int64) bool { return unix-idleLimit > int64(*s) }

// idlenessBefore returns the idleness of a view before the second with this index. It skips seconds without a name,
// because they are never emitted.
func idlenessBefore(c *collector.Collector, v *node.View, index int64) idleness {
	for {
		index = v.LastActive(index)
		if index < v.Since() {
			return idleness(v.Began().Unix() - 1)
		}
		if name, ok := c.Timeline().WallTime(index); ok {
			return idleness(name.Unix())
		}
	}
}
