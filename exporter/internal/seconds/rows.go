package seconds

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// rows are rows of a metric log, and fill the gaps between them. An idle second of a resource has no row: it is zero if another
// resource has a row in that second, which shows that the process ran, and the resource is known from an earlier row.
type rows struct {
	only    Selection
	from    int64              // earlier rows show which resources are known, and which were idle
	series  map[string]*series // by resource
	total   *series            // of all inbound traffic
	present []int64            // seconds with any row, ascending
	filled  []node.MetricNode  // what fill returned last
}

func newRows(only Selection, from int64) rows {
	return rows{only: only, from: from, series: map[string]*series{}, total: newSeries()}
}

// series are the rows of one resource.
type series struct {
	before int64 // the last second with a row before those in rows, 0 if there is none
	still  still // as of before rows
	rows   []node.MetricNode
}

func newSeries() *series { return &series{still: unknown} }

// last returns the last second with a row; 0 if there is none.
func (r *rows) last() int64 {
	if n := len(r.present); n > 0 {
		return r.present[n-1]
	}
	return 0
}

// add adds a row, which is copied. Rows must ascend; one out of order is skipped. One that is not selected shows all the same that the
// process ran.
func (r *rows) add(resource string, m *node.MetricNode) {
	var x *series
	at := m.Start.Unix()
	switch {
	case at >= r.from && at > r.last():
		r.present = append(r.present, at)
	case at >= r.from && at < r.last():
		return
	}
	if resource == collector.InboundTotal {
		if x = r.total; !r.only.total() {
			return
		}
	} else if !r.only.wants(resource) {
		return
	} else if x = r.series[resource]; x == nil {
		x = newSeries()
		r.series[resource] = x
	}
	if at >= r.from {
		x.add(m)
		return
	}
	x.still.see(m)
	if x != r.total {
		x.before = max(x.before, at)
	}
}

// add adds a row. One out of order is skipped.
func (s *series) add(m *node.MetricNode) {
	if n := len(s.rows); n == 0 || m.Start.After(s.rows[n-1].Start) {
		s.rows = append(s.rows, *m)
	}
}

// any reports whether anything happened in the rows.
func (s *series) any() bool {
	return slices.ContainsFunc(s.rows, func(m node.MetricNode) bool { return !m.Idle() })
}

// fill returns the seconds of a resource, with idle ones, and moves on behind them. A resource that was idle for longer than
// maxIdle has ended. They are valid until the next call.
func (r *rows) fill(of *series, maxIdle time.Duration) records {
	all := r.filled[:0]
	rest, last := of.rows, of.before
	for _, second := range r.present {
		for len(rest) > 0 && rest[0].Start.Unix() < second {
			rest = rest[1:] // out of order
		}
		switch {
		case len(rest) > 0 && rest[0].Start.Unix() == second:
			all = append(all, rest[0])
			rest, last = rest[1:], second
		case last != 0 && second-last <= int64(maxIdle/time.Second):
			all = append(all, node.MetricNode{Start: time.Unix(second, 0)})
		}
	}
	r.filled = all
	return records{all, of.still.told(nil, all)}
}
