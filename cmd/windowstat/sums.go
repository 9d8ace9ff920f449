package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// totals adds rows up, by application and resource; the processes of an application count together. Only what adds up is added:
// the average response time is that of all calls, each counted with the average of its row, which the log has in whole
// milliseconds, rounded down. Its memory is that of the names.
type totals struct {
	by   *column // of the busiest second
	of   map[sumKey]*sums
	last *sums
}

type sumKey struct{ app, resource string }

// sums are what one resource did.
type sums struct {
	metriclog.Row         // Start and RT are not set, and Concurrency is the most of a second and process
	rt            float64 // of all calls, in nanoseconds

	now     time.Time // the second of the last row
	current int64     // what there was in it so far
	peak    int64
	peakAt  time.Time
	worst   time.Duration // highest average response time of a second
	worstAt time.Time

	next *sums // what followed the last time, and mostly does again
}

// maxSummed bounds the resources that are kept apart. What comes later counts as [collector.Other].
const maxSummed = 100_000

// add adds a row. Rows must ascend by second.
func (t *totals) add(r *metriclog.Row) {
	x := t.find(r)
	x.Pass += r.Pass
	x.Block += r.Block
	x.Success += r.Success
	x.Exception += r.Exception
	x.OccupiedPass += r.OccupiedPass
	x.Concurrency = max(x.Concurrency, r.Concurrency)
	x.rt += float64(r.RT) * float64(r.Success)
	if !r.Start.Equal(x.now) {
		x.now, x.current = r.Start, 0
	}
	if x.current += t.by.of(r); x.current > x.peak {
		x.peak, x.peakAt = x.current, r.Start
	}
	if r.RT > x.worst {
		x.worst, x.worstAt = r.RT, r.Start
	}
}

// find returns the sums that a row is added to.
func (t *totals) find(r *metriclog.Row) *sums {
	if t.last != nil {
		if x := t.last.next; x != nil && x.Resource == r.Resource && x.App == r.App {
			t.last = x
			return x
		}
	}
	key := sumKey{r.App, r.Resource}
	x := t.of[key]
	if x == nil && len(t.of) >= maxSummed && r.Resource != collector.InboundTotal {
		key.resource = collector.Other
		x = t.of[key]
	}
	if x == nil {
		if t.of == nil {
			t.of = map[sumKey]*sums{}
		}
		x = &sums{Row: metriclog.Row{App: key.app, Resource: key.resource}}
		t.of[key] = x
	}
	if t.last != nil {
		t.last.next = x
	}
	t.last = x
	return x
}

// sorted returns all, those with the most first; all inbound traffic, which is no resource, comes last.
func (t *totals) sorted(most func(*metriclog.Row) int64) []*sums {
	all := make([]*sums, 0, len(t.of))
	for _, x := range t.of {
		all = append(all, x)
	}
	inbound := func(x *sums) int {
		if x.Resource == collector.InboundTotal {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b *sums) int {
		return cmp.Or(inbound(a)-inbound(b), cmp.Compare(most(&b.Row), most(&a.Row)), cmp.Compare(a.App, b.App), cmp.Compare(a.Resource, b.Resource))
	})
	return all
}
