// Package timeline puts calls that are known when they have ended, from lines of logs or spans, back into the seconds in which they
// were: a [Timeline] sorts them and repeats them in their own time, and a [Counter], such as [Collected], counts them.
//
// A line of an access log says when a call began and how long it took. It is written when the call ends, so a call of ten seconds stands
// behind thousands that began after it. A service that counts by itself sees that call enter first. The timeline restores this order: it
// waits as long as calls may still come for a second, and then has each call enter and leave at its times by a clock that it sets
// itself. So a Collector counts passes, calls in flight, peaks and response times as if it had been in the service, and replays,
// receivers of spans and services share all that takes statistics out.
//
// A call that comes too late for the second of its begin is clipped to the first second that is still open, and one that had ended
// before that is late and counted by the source. Neither is lost in silence.
package timeline

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/windowstat/windowstat/collector"
)

// Timeline repeats calls, second by second. It holds them in a ring by the second in which they began, until no earlier ones are expected:
// calls come out of order by seconds, since their sources tell of them when they have ended. Then it plays the second: its calls begin in the
// order of their times, those of one time as they came, and each ends when its time has come.
//
// It must be made with [New], and have a Counter. One goroutine uses it at a time. A call takes 40 bytes until it is played, and some
// hundred while it is in flight.
type Timeline struct {
	Counter
	// From is the Unix time of the first second that has not been played, and so accepts calls. It is set before the first call.
	From int64

	seconds [][]Call
	held    int // calls in the ring
	pending pending
}

// Counter is where calls are counted.
type Counter interface {
	Block(c *Call)
	// Begin returns what ends the call, if the counter needs that.
	Begin(c *Call) *collector.Entry
	End(x Completion)
	// Over is called at the end of each second in which there was a call.
	Over(second int64) error
}

// Completion is the end of a call that has begun.
type Completion struct {
	Call
	Ended int64 // Unix nanoseconds
	Entry *collector.Entry
}

// New makes a timeline that accepts calls of so many seconds, From and those after it.
func New(seconds int64) *Timeline {
	return &Timeline{seconds: make([][]Call, seconds)}
}

const (
	// Nanos is a second. Times are Unix nanoseconds, and seconds Unix times.
	Nanos = int64(1e9)
	// MaxHeld is how many calls a timeline should hold, which bounds the memory.
	MaxHeld = 4 << 20
	// crowd is the number of calls in a second from which equal ones are merged.
	crowd = 1024
)

// Held is how many calls wait for their second to be played.
func (t *Timeline) Held() int { return t.held }

// slot is where the calls of a second are.
func (t *Timeline) slot(second int64) *[]Call {
	return &t.seconds[second%int64(len(t.seconds))]
}

// Late reports whether a call had ended before From: it is in no second that accepts calls.
func (t *Timeline) Late(c *Call) bool { return c.end() < t.From*Nanos }

// Add adds a call that is not late and begins before the end of the ring. One that began in a second that has been played, and ends in
// one that has not, is clipped, which Add reports: it passes in the first second that accepts calls, with all of its duration.
func (t *Timeline) Add(c Call) (clipped bool) {
	if open := t.From * Nanos; c.At < open {
		c.Clipped, c.At, clipped = open-c.At, open, true
	}
	slot := t.slot(c.At / Nanos)
	*slot = append(*slot, c)
	t.held++
	// Without durations, calls of one second are alike if name and status are: a busy second needs as much memory as it has kinds of calls.
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

// Until plays the seconds before the given one that have calls, or in which calls are in flight. The error is the Counter's.
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

// play plays a second.
func (t *Timeline) play(second int64, calls []Call) error {
	byTime := func(a, b Call) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(calls, byTime) {
		slices.SortStableFunc(calls, byTime)
	}
	// What ends at the time at which another call begins ends first, so that the most calls in flight are not one too many.
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

// Call is what counts of a call that has ended. Equal calls may be merged into one. It has no pointers, so that a million of them
// cost the garbage collector nothing: what a call is called is a number, which a [Counter] knows.
type Call struct {
	At       int64 // when it began, Unix nanoseconds
	Clipped  int64 // how much earlier it began, in a second that had ended
	Duration int64 // nanoseconds; Unknown if its source does not say
	Name     int32 // of its resource
	N        int32 // how many calls this stands for, at least 1
	Outcome
	Status int16 // of HTTP, or GRPC and more; 0 for none
	Passed bool  // the previous process counted its beginning
}

// Unknown is the duration of a call whose source does not say.
const Unknown = -1

// GRPC is the status of a call that gRPC answered with code 0; others are as much more.
const GRPC = 1000

// Outcome is what became of a call.
type Outcome uint8

const (
	// Good is a call that neither failed nor was blocked, whatever its status is.
	Good Outcome = iota
	Failed
	Blocked
)

// end is when the call ended, Unix nanoseconds. At is not clipped yet.
func (c *Call) end() int64 { return c.At + max(c.Duration, 0) }

// code is the status as a Collector counts it.
func (c *Call) code() collector.Code {
	switch {
	case c.Status == 0:
		return collector.Code{}
	case c.Status >= GRPC:
		return collector.GRPCCode(uint32(c.Status - GRPC))
	}
	return collector.HTTPStatus(int(c.Status))
}
