package seconds

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/node"
)

// Log is what [Resources] need of a metric log; metriclog.Writer implements it.
type Log interface {
	// Logged calls f with the records in [from, to), Unix times, ascending by second, until f returns false.
	// A record has the Start and the fields that metrics with [table.Second].Logged read, and zero elsewhere. A second without
	// events has no record. The record is valid during the call. The log counts what it cannot read and leaves it out.
	Logged(from, to int64, f func(resource string, m *node.MetricNode) bool)
	// Runs returns the processes that counted the seconds of the log.
	Runs() *runs.File
}

// logged are seconds of earlier processes, from the log. A nil *logged has none.
type logged struct {
	rows
	seconds int64 // number of seconds
	size    Size  // at most
	to      int64 // the second before which all of them are
}

// logged reads the seconds in [from, to) from the log, as many as the limit allows.
func (r *Resources) logged(s *Selection, from, to int64, limit Limit) *logged {
	l := &logged{rows: newRows(*s, from), to: to}
	second := nextSize{one: r.size(s, &r.resources), told: map[still]Size{}}
	if s.total() {
		second.always = r.size(s, &r.inbound).whole
	}
	// end completes the last second, and reports whether the limit allows another.
	end := func() bool {
		n := len(l.present)
		if n == 0 {
			return true
		}
		l.size = l.size.Add(second.at(l.last())).Add(r.runSize(s))
		if n > 1 && (l.size.Samples > limit.Samples || l.size.Bytes > limit.Bytes) {
			l.to, l.present = l.present[n-1], l.present[:n-1] // over the limit
			return false
		}
		return l.size.Samples < limit.Samples && l.size.Bytes < limit.Bytes && int64(n) < limit.Seconds
	}
	r.log.Logged(from-int64(r.stats.History()/time.Second), to, func(resource string, m *node.MetricNode) bool {
		if at := m.Start.Unix(); at >= from && at > l.last() && !end() {
			l.to = min(l.to, at)
			return false
		}
		if x := l.add(resource, m); x != nil && x != l.total {
			second.row(resource, x, m)
		}
		return true
	})
	if l.to == to {
		end()
	}
	l.seconds = int64(len(l.present))
	return l
}

// take removes and returns the seconds of a resource.
func (l *logged) take(resource string) logs {
	if l == nil || l.series[resource] == nil {
		return logs{}
	}
	of := l.series[resource]
	delete(l.series, resource)
	return l.fill(of, math.MaxInt64)
}

// inbound returns the seconds of all inbound traffic, none if there was none in them.
func (l *logged) inbound() logs {
	if l == nil || !l.total.any() {
		return logs{}
	}
	return l.fill(l.total, math.MaxInt64)
}

// rest returns the resources that were not taken, sorted.
func (l *logged) rest() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.series))
}
