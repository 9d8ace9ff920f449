package seconds

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Log is a metric log, as far as [Resources] read one; metriclog.Writer is one.
type Log interface {
	// Logged calls f for the records that earlier processes logged of the seconds from from to before to, Unix times, ascending
	// by second, until it returns false. They have the Start and what metrics with [table.Second].Logged read, and nothing
	// else. A second in which nothing happened has none. The record is f's for the call. What cannot be read is left out,
	// and counted by the log.
	Logged(from, to int64, f func(resource string, m *node.MetricNode) bool)
}

// logged are seconds of earlier processes, from the log. A nil *logged has none.
type logged struct {
	rows
	seconds int64 // how many there are
	size    Size  // and how much they are at most
	to      int64 // all of them are from before this one
}

// logged reads the seconds from from to before to from the log, or the first of them if the limit does not allow more.
func (r *Resources) logged(s *Selection, one rowSize, from, to int64, limit Limit) *logged {
	l := &logged{rows: rows{series: map[string]*series{}}, to: to}
	var second Size // of the known resources
	// end ends the last second, and reports whether there is room for another.
	end := func() bool {
		n := len(l.present)
		if n == 0 {
			return true
		}
		l.size = l.size.Add(second)
		if n > 1 && (l.size.Samples > limit.Samples || l.size.Bytes > limit.Bytes) {
			l.to, l.present = l.present[n-1], l.present[:n-1] // it was too much
			return false
		}
		return l.size.Samples < limit.Samples && l.size.Bytes < limit.Bytes && int64(n) < limit.Seconds
	}
	r.log.Logged(from-int64(r.stats.History()/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		if at >= from && at > l.last() {
			if !end() {
				l.to = min(l.to, at)
				return false
			}
			l.present = append(l.present, at)
		}
		if resource == collector.InboundTotal || !s.wants(resource) {
			return true
		}
		x := l.series[resource]
		if x == nil {
			x = &series{}
			l.series[resource] = x
			second = second.Add(one.of(resource))
		}
		if at >= from {
			x.add(m)
		} else {
			x.before = at
		}
		return true
	})
	if l.to == to {
		end()
	}
	l.seconds = int64(len(l.present))
	return l
}

// take returns the seconds of a resource, once.
func (l *logged) take(resource string) []node.MetricNode {
	if l == nil || l.series[resource] == nil {
		return nil
	}
	of := l.series[resource]
	delete(l.series, resource)
	return l.fill(of, math.MaxInt64)
}

// rest is the resources that were not taken, sorted.
func (l *logged) rest() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.series))
}
