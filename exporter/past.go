package exporter

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Log is a metric log, as far as other ways out need one; metriclog.Writer is one.
type Log interface {
	// Past calls f for the records that the processes before this one logged of the seconds from from to before to, Unix
	// times, ascending by second, until it returns false. They have the Start and what [Second].Logged metrics read, and
	// nothing else. A second in which nothing happened has none. The record is f's for the call. What cannot be read is
	// left out, and counted by the log.
	Past(from, to int64, f func(resource string, m *node.MetricNode) bool)
	// Beside is the path for a file of this name that goes with the log.
	Beside(name string) string
}

// past is what processes before this one logged. A nil *past is none.
type past struct {
	lived
	seconds int64 // how many there are
	size    Size  // and how much they are at most
	to      int64 // all of them are from before this one
}

// past reads the seconds from from to before to from the log, or the first of them if the limit does not allow more.
func (r *Resources) past(s *Selection, one rowSize, from, to int64, limit Limit) *past {
	p := &past{lived: lived{known: map[string]*life{}}, to: to}
	var second Size // of the known resources
	// end ends the last second, and reports whether there is room for another.
	end := func() bool {
		n := len(p.alive)
		if n == 0 {
			return true
		}
		p.size = p.size.Add(second)
		if n > 1 && (p.size.Samples > limit.Samples || p.size.Bytes > limit.Bytes) {
			p.to, p.alive = p.alive[n-1], p.alive[:n-1] // it was too much
			return false
		}
		return p.size.Samples < limit.Samples && p.size.Bytes < limit.Bytes && int64(n) < limit.Seconds
	}
	r.log.Past(from-int64(r.stats.History()/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		if at >= from && at > p.last() {
			if !end() {
				p.to = min(p.to, at)
				return false
			}
			p.alive = append(p.alive, at)
		}
		if resource == collector.InboundTotal || !s.wants(resource) {
			return true
		}
		x := p.known[resource]
		if x == nil {
			x = &life{}
			p.known[resource] = x
			second = second.Add(one.of(resource))
		}
		if at >= from {
			x.add(m)
		} else {
			x.before = at
		}
		return true
	})
	if p.to == to {
		end()
	}
	p.seconds = int64(len(p.alive))
	return p
}

// take returns the seconds of a resource, once.
func (p *past) take(resource string) []node.MetricNode {
	if p == nil || p.known[resource] == nil {
		return nil
	}
	of := p.known[resource]
	delete(p.known, resource)
	return p.fill(of, math.MaxInt64)
}

// rest is the resources that were not taken, sorted.
func (p *past) rest() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.known))
}
