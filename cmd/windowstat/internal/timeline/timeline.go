// Package timeline assigns calls to the seconds of their starts, although their sources report them when they end:
// lines of a log, or spans. A [Timeline] sorts the calls and replays them in their own time. A [Counter], such as
// [Collected], counts them. [Known] caches their names.
//
// A line of an access log is written when its call ends. The line of a call of ten seconds therefore follows the lines
// of thousands of calls that started later. A service that counts by itself records the long call first. The timeline
// restores this order: it waits as long as calls of a second may arrive, and then replays their starts and ends in
// order, on a clock that the timeline sets. A Collector therefore counts passes, calls in flight, peaks and response
// times as inside the service.
//
//	calls, by start     0 1 2 3 4 5 6 7 8 9     seconds of the ring
//	                    |<- replayed ->|<- open to late calls ->|
//	                                   ^ From
//
// A call that arrives after the second of its start was replayed is clipped: it starts in the first open second. A call
// that also ended before that second is late; the source counts late calls. No call is dropped silently.
package timeline

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/windowstat/windowstat/collector"
)

// Timeline replays calls, second by second. It holds calls in a ring by the second of their start, until no earlier
// calls are expected. Then it replays the second: the calls start in the order of their times, or in the order of
// arrival if the times are equal. Each call ends at its time.
//
// Create a Timeline with [New], and set its Counter. A Timeline is not safe for concurrent use. A call takes 40 bytes
// until it is replayed, and some hundred while it is in flight.
type Timeline struct {
	Counter
	// From is the Unix time of the first second that was not replayed, and therefore accepts calls. Set it before the
	// first call.
	From int64

	seconds [][]Call
	held    int // calls in the ring
	pending pending
}

// Counter counts the calls of a Timeline, in the order of their times.
type Counter interface {
	Block(c *Call)
	// Begin records the start of a call. The Timeline passes the entry that Begin returns, or nil, to End.
	Begin(c *Call) *collector.Entry
	End(x Completion)
	// Over is called at the end of each second with calls or calls in flight.
	Over(second int64) error
}

// Completion is the end of a call that has begun.
type Completion struct {
	Call
	Ended int64 // Unix nanoseconds
	Entry *collector.Entry
}

// New returns a timeline whose ring holds the given number of seconds, starting with From.
func New(seconds int64) *Timeline {
	return &Timeline{seconds: make([][]Call, seconds)}
}

const (
	// Nanos is a second. Times are Unix nanoseconds, and seconds Unix times.
	Nanos = int64(1e9)
	// MaxHeld is the maximum number of calls that a source should let a timeline hold. It bounds the memory.
	MaxHeld = 4 << 20
	// crowd is the smallest number of calls in a second that makes Add merge equal calls.
	crowd = 1024
)

// Held returns the number of calls that are not replayed yet.
func (t *Timeline) Held() int { return t.held }

// slot returns the calls that start in a second.
func (t *Timeline) slot(second int64) *[]Call {
	return &t.seconds[second%int64(len(t.seconds))]
}

// Late reports whether a call ended before From, so no open second can have it.
func (t *Timeline) Late(c *Call) bool { return c.end() < t.From*Nanos }

// Add adds a call that is not late and starts before the end of the ring. A call that started in a replayed second and
// ends in an open one is clipped: it passes in the first open second, with its whole duration. Add reports whether it
// clipped the call.
func (t *Timeline) Add(c Call) (clipped bool) {
	if open := t.From * Nanos; c.At < open {
		c.Clipped, c.At, clipped = open-c.At, open, true
	}
	slot := t.slot(c.At / Nanos)
	*slot = append(*slot, c)
	t.held++
	// Without durations, calls of one second with the same name and status are equal. Merging them bounds the memory of
	// a busy second.
	if n := len(*slot); c.Duration == Unknown && n >= crowd && n&(n-1) == 0 {
		t.held -= n
		*slot = merge(*slot)
		t.held += len(*slot)
	}
	return clipped
}

// merge merges equal calls.
func merge(calls []Call) []Call {
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Status, b.Status))
	})
	to := calls[:0]
	for _, c := range calls {
		if n := len(to); n > 0 && to[n-1].Name == c.Name && to[n-1].Status == c.Status {
			to[n-1].N += c.N
			continue
		}
		to = append(to, c)
	}
	return to
}

// Until replays all seconds before the given second, and returns the error of the Counter. Seconds without calls, and
// without calls in flight, are skipped.
func (t *Timeline) Until(second int64) error {
	for t.From < second && t.held+len(t.pending) > 0 {
		now, slot := t.From, t.slot(t.From)
		t.From++
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
	t.From = max(t.From, second)
	return nil
}

// play replays a second.
func (t *Timeline) play(second int64, calls []Call) error {
	byTime := func(a, b Call) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(calls, byTime) {
		slices.SortStableFunc(calls, byTime)
	}
	// A call that ends at the time at which another one starts ends first. Otherwise the maximum in flight would be one
	// too high.
	for i := range calls {
		c := &calls[i]
		t.complete(c.At + 1)
		if c.Outcome == Blocked {
			t.Block(c)
			continue
		}
		x := Completion{Call: *c, Entry: t.Begin(c)}
		if c.Duration == Unknown {
			x.Ended = c.At
			t.End(x)
			continue
		}
		x.Ended = c.At - c.Clipped + c.Duration
		heap.Push(&t.pending, x)
	}
	t.complete((second + 1) * Nanos)
	return t.Over(second)
}

// complete ends the calls that end before a time.
func (t *Timeline) complete(before int64) {
	for len(t.pending) > 0 && t.pending[0].Ended < before {
		t.End(heap.Pop(&t.pending).(Completion))
	}
}

// pending is a heap of the calls in flight, the next to end first.
type pending []Completion

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, j int) bool { return p[i].Ended < p[j].Ended }
func (p pending) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)        { *p = append(*p, x.(Completion)) }
func (p *pending) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// Call is a call that has ended. Equal calls may be merged. A Call has no pointers, so the garbage collector does not
// scan millions of calls; a number represents the name of the resource, and the [Counter] resolves the number.
type Call struct {
	At       int64 // start, Unix nanoseconds
	Clipped  int64 // nanoseconds from the real start, in a replayed second, to At
	Duration int64 // nanoseconds, or Unknown
	Name     int32 // number of its resource
	N        int32 // number of merged calls, at least 1
	Outcome
	Status int16 // HTTP status, or GRPC plus a code; 0 if unknown
	Passed bool  // the previous process counted its start
}

// Unknown is the Duration of a call whose source does not report it.
const Unknown = -1

// GRPC is the Status of a gRPC call with code 0. Other codes are added to it.
const GRPC = 1000

// Outcome is the result of a call.
type Outcome uint8

const (
	// Good is a call that neither failed nor was blocked, regardless of its status.
	Good Outcome = iota
	Failed
	Blocked
)

// end returns the end of a call that is not clipped yet, in Unix nanoseconds.
func (c *Call) end() int64 { return c.At + max(c.Duration, 0) }

// code returns the status as a Collector's code.
func (c *Call) code() collector.Code {
	switch {
	case c.Status == 0:
		return collector.Code{}
	case c.Status >= GRPC:
		return collector.GRPCCode(uint32(c.Status - GRPC))
	}
	return collector.HTTPStatus(int(c.Status))
}
