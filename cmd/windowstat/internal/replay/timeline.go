package replay

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/windowstat/windowstat/collector"
)

// timeline repeats calls, second by second. It holds them in a ring by the second in which they began, until no earlier ones are expected:
// lines are out of order by seconds, since servers write them when calls end. Then it plays the second: its calls begin in the order of
// their times, those of one time as they came, and each ends when its time has come.
type timeline struct {
	counter
	seconds [][]call
	from    int64 // Unix time of the first second that has not been played, and so accepts calls
	held    int   // calls in the ring
	pending pending
}

// counter is where calls are counted: the records of [Run], or the Collector of a [Follower].
type counter interface {
	block(c *call)
	// begin returns what ends the call, if the counter needs that.
	begin(c *call) *collector.Entry
	end(x completion)
	// over is called at the end of each second in which there was a call.
	over(second int64) error
}

// completion is the end of a call that has begun.
type completion struct {
	call
	at    int64 // when it ends, Unix nanoseconds
	entry *collector.Entry
}

// newTimeline makes a timeline for lines that are at most tolerance seconds out of order.
func newTimeline(tolerance int64) *timeline {
	return &timeline{seconds: make([][]call, tolerance+1)}
}

const (
	// nanos is a second. Times are Unix nanoseconds, and seconds Unix times.
	nanos = int64(1e9)
	// maxHeld bounds the memory: beyond it, the oldest seconds are evicted.
	maxHeld = 4 << 20
	// crowd is the number of calls in a second from which equal ones are merged.
	crowd = 1024
)

// slot is where the calls of a second are.
func (t *timeline) slot(second int64) *[]call {
	return &t.seconds[second%int64(len(t.seconds))]
}

// add adds a call that began in [from, from+len(seconds)).
func (t *timeline) add(c call) {
	slot := t.slot(c.at / nanos)
	*slot = append(*slot, c)
	t.held++
	// Without durations, calls of one second are alike if name and status are: a busy second needs as much memory as it has kinds of calls.
	if n := len(*slot); c.duration == unknown && n >= crowd && n&(n-1) == 0 {
		t.held -= n
		*slot = merge(*slot)
		t.held += len(*slot)
	}
}

// merge merges equal calls.
func merge(calls []call) []call {
	slices.SortFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.status, b.status))
	})
	to := calls[:0]
	for _, c := range calls {
		if n := len(to); n > 0 && to[n-1].name == c.name && to[n-1].status == c.status {
			to[n-1].n += c.n
			continue
		}
		to = append(to, c)
	}
	return to
}

// until plays the seconds before the given one that have calls, or in which calls are in flight.
func (t *timeline) until(second int64) error {
	for t.from < second && t.held+len(t.pending) > 0 {
		now, slot := t.from, t.slot(t.from)
		t.from++
		calls := *slot
		if len(calls)+len(t.pending) == 0 {
			continue
		}
		t.held -= len(calls)
		if *slot = calls[:0]; cap(calls) > crowd { // a busy second needs more than others
			*slot = nil
		}
		if err := t.play(now, calls); err != nil {
			return err
		}
	}
	t.from = max(t.from, second)
	return nil
}

// play plays a second.
func (t *timeline) play(second int64, calls []call) error {
	byTime := func(a, b call) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(calls, byTime) {
		slices.SortStableFunc(calls, byTime)
	}
	// What ends at the time at which another call begins ends first, so that the most calls in flight are not one too many.
	for i := range calls {
		c := &calls[i]
		t.complete(c.at + 1)
		if c.outcome == blocked {
			t.block(c)
			continue
		}
		x := completion{call: *c, entry: t.begin(c)}
		if c.duration == unknown {
			x.at = c.at
			t.end(x)
			continue
		}
		x.at = c.at - c.clipped + c.duration
		heap.Push(&t.pending, x)
	}
	t.complete((second + 1) * nanos)
	return t.over(second)
}

// complete ends the calls that end before a time.
func (t *timeline) complete(before int64) {
	for len(t.pending) > 0 && t.pending[0].at < before {
		t.end(heap.Pop(&t.pending).(completion))
	}
}

// pending is a heap of the calls in flight, the next to end first.
type pending []completion

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, j int) bool { return p[i].at < p[j].at }
func (p pending) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)        { *p = append(*p, x.(completion)) }
func (p *pending) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}
