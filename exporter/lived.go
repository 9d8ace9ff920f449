package exporter

import (
	"time"

	"github.com/windowstat/windowstat/node"
)

// lived is some seconds of a service's life, by the rows of its metric log. An idle second of a resource has no row: it
// is zero if anything else was logged in that second, so that the process is known to have lived, and the resource is
// known from a row before it.
type lived struct {
	known map[string]*life // resources
	alive []int64          // the seconds
}

// life is that of a resource.
type life struct {
	before int64             // the last second with a row before those, 0 if there is none
	rows   []node.MetricNode // of those
}

// last is the last second that has a row so far.
func (l *lived) last() int64 {
	if n := len(l.alive); n > 0 {
		return l.alive[n-1]
	}
	return 0
}

// add adds the row of a resource that is known. One that is out of place is not ours.
func (l *life) add(m *node.MetricNode) {
	if n := len(l.rows); n == 0 || m.Start.After(l.rows[n-1].Start) {
		l.rows = append(l.rows, *m)
	}
}

// fill returns the seconds of a resource, with the idle ones. It is not known any more when it was idle for longer than
// forget.
func (l *lived) fill(of *life, forget time.Duration) []node.MetricNode {
	var all []node.MetricNode
	rows, last := of.rows, of.before
	for _, second := range l.alive {
		for len(rows) > 0 && rows[0].Start.Unix() < second {
			rows = rows[1:] // out of place
		}
		switch {
		case len(rows) > 0 && rows[0].Start.Unix() == second:
			all = append(all, rows[0])
			rows, last = rows[1:], second
		case last != 0 && second-last <= int64(forget/time.Second):
			all = append(all, node.MetricNode{Start: time.Unix(second, 0)})
		}
	}
	return all
}
