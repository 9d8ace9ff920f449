package exporter

import (
	"maps"
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
	resources map[string][]node.MetricNode // what is not taken
	seconds   int64                        // how many there are
	size      Size                         // and how much they are at most
	to        int64                        // all of them are from before this one
}

// past reads the seconds from from to before to from the log, or the first of them if the limit does not allow more.
// An idle second of a resource has no row: it is zero if anything else was logged in that second, so
// that the process is known to have lived, and the resource is known from a row before it.
func (r *Resources) past(s *Selection, one rowSize, from, to int64, limit Limit) *past {
	p := &past{resources: map[string][]node.MetricNode{}, to: to}
	known := map[string]int64{} // resources, and the first second of each
	var second Size             // of the known resources
	var alive []int64           // seconds
	// end ends the last second, and reports whether there is room for another.
	end := func() bool {
		n := len(alive)
		if n == 0 {
			return true
		}
		p.size = p.size.Add(second)
		if n > 1 && (p.size.Samples > limit.Samples || p.size.Bytes > limit.Bytes) {
			p.to, alive = alive[n-1], alive[:n-1] // it was too much
			return false
		}
		return p.size.Samples < limit.Samples && p.size.Bytes < limit.Bytes && int64(n) < limit.Seconds
	}
	r.log.Past(from-int64(r.stats.History()/time.Second), to, func(resource string, m *node.MetricNode) bool {
		at := m.Start.Unix()
		if n := len(alive); at >= from && (n == 0 || at > alive[n-1]) {
			if !end() {
				p.to = min(p.to, at)
				return false
			}
			alive = append(alive, at)
		}
		if resource == collector.InboundTotal || !s.wants(resource) {
			return true
		}
		if _, ok := known[resource]; !ok {
			known[resource] = at
			second = second.Add(one.of(resource))
		}
		if at >= from {
			p.add(resource, m)
		}
		return true
	})
	if p.to == to {
		end()
	}
	p.seconds = int64(len(alive))
	for resource, first := range known {
		p.resources[resource] = fill(p.resources[resource], alive, first)
	}
	return p
}

// add adds a row. One that is out of place is not ours.
func (p *past) add(resource string, m *node.MetricNode) {
	rows := p.resources[resource]
	if n := len(rows); n == 0 || m.Start.After(rows[n-1].Start) {
		p.resources[resource] = append(rows, *m)
	}
}

// fill puts the idle seconds of a resource between its rows: of all seconds in which the process lived, those from first
// on.
func fill(rows []node.MetricNode, alive []int64, first int64) []node.MetricNode {
	var all []node.MetricNode
	for _, second := range alive {
		for len(rows) > 0 && rows[0].Start.Unix() < second {
			rows = rows[1:] // out of place
		}
		switch {
		case len(rows) > 0 && rows[0].Start.Unix() == second:
			all = append(all, rows[0])
			rows = rows[1:]
		case second >= first:
			all = append(all, node.MetricNode{Start: time.Unix(second, 0)})
		}
	}
	return all
}

// take returns the seconds of a resource, once.
func (p *past) take(resource string) []node.MetricNode {
	if p == nil {
		return nil
	}
	seconds := p.resources[resource]
	delete(p.resources, resource)
	return seconds
}

// rest is the resources that were not taken, sorted.
func (p *past) rest() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.resources))
}
