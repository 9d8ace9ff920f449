package collector

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/node"
)

// ErrPanicked is the error of a call whose function did not return: it panicked, or ended its goroutine. It is always an
// exception.
var ErrPanicked = errors.New("collector: panicked")

// Entry is a call in flight. It must not be copied: the copy would end the call a second time. Its zero value is no call.
//
// A call ends by one of its methods, from any goroutine, in any order with other entries. What ends it a second time counts nothing.
type Entry struct {
	call node.Call // its note says what ends with it: a slot of the frames, and whether there is a reservation
	at   *place
}

// End ends the call with the error that err points to when the surrounding function returns. It is for defer:
//
//	func load(ctx context.Context) (err error) {
//		ctx, e, err := c.Enter(ctx, "load")
//		if err != nil {
//			return err // a limit refused the call
//		}
//		defer e.End(&err)
//		…
//	}
//
// A nil err is no error. A panic is [ErrPanicked], an exception, and goes on; End sees it only where it is deferred itself, not within
// another deferred function. A runtime.Goexit looks like a return: only [Resource.Do] and [Collector.Do] see that.
func (e *Entry) End(err *error) {
	if reason := recover(); reason != nil {
		defer panic(reason) // whatever Options.Exception does
		e.Exit(ErrPanicked)
		return
	}
	if err == nil {
		e.Exit(nil)
		return
	}
	e.Exit(*err)
}

// Exit records that the call ended: its response time, whether it failed, and one less in flight, as one change. [Options]
// decide which errors are failures.
//
// Deferred as it stands it counts every call as good: Go evaluates err when the defer statement is reached. See [Entry.End].
func (e *Entry) Exit(err error) {
	if note := e.call.Note(); err == nil && note&reserved == 0 { // as end does, without a call
		if e.call.End(false, 0) > 0 && note != 0 {
			e.at.leaf.resource.c.running.empty(note)
		}
		return
	}
	e.exit(err, Code{})
}

// reserved is the bit of a call's note that tells of a reservation. The others are the number of a slot.
const reserved = 1 << 31

// end ends the call, and returns how many completions were counted.
func (e *Entry) end(failed bool, code Code) (n int64) {
	note := e.call.Note()
	if note&reserved != 0 {
		n = e.at.reserved.end(&e.call, failed, code.n)
	} else {
		n = e.call.End(failed, code.n)
	}
	if n > 0 {
		e.at.leaf.resource.c.running.empty(note &^ reserved)
	}
	return n
}

// exit ends the call, and returns how many completions were counted. It asks whether an error is an exception. Whatever the answer, even
// a panic, which is one, the call ends.
func (e *Entry) exit(err error, code Code) (n int64) {
	if e.at == nil {
		return 0
	}
	if err == nil {
		return e.end(false, code)
	}
	c := e.at.leaf.resource.c
	failed := true
	defer func() {
		if n = e.end(failed, code); n > 0 && failed && c.opts.ExceptionClass != nil {
			e.at.leaf.resource.classify(err, n)
		}
	}()
	failed = c.isException(err)
	return 0 // replaced when the call ends
}

// classify counts exceptions by their class, as [Unspecified] if the function that tells it does not return.
func (r *Resource) classify(err error, n int64) {
	class := ""
	defer func() { r.exceptions.add(class, n) }()
	class = r.c.opts.ExceptionClass(err)
}

// run exits the entry when f has returned, with its error, or panicked.
func (e *Entry) run(f func() error) (err error) {
	err = ErrPanicked // unless it returns
	defer func() { e.Exit(err) }()
	err = f()
	return err
}

// ExitCode is [Entry.Exit] for a call that was answered with a code: its completion is counted under the code, in the same
// change. Without a code it is Exit. It costs a few nanoseconds more.
func (e *Entry) ExitCode(err error, code Code) { e.exit(err, code) }

// ExitTrace is [Entry.ExitCode] for a call that is part of a trace. The id is kept as an exemplar: the latest one of each
// classic bucket of the resource's histogram. An id that is empty, longer than 64 bytes or no UTF-8 is left out. It
// costs an allocation and another clock reading more than Exit; so leave it for calls whose trace is recorded.
func (e *Entry) ExitTrace(err error, code Code, id string) {
	if e.at == nil {
		return
	}
	r := e.at.leaf.resource
	rt := max(r.c.line.Now().Sub(e.call.Entered()), 0)
	if e.exit(err, code) > 0 {
		r.keepExemplar(id, rt)
	}
}

// Exemplar is one call that stands for those of about its response time: the way from a histogram to a trace.
type Exemplar struct {
	TraceID string
	RT      time.Duration
	// At is when the call ended.
	At time.Time
}

// maxTraceID is how long the id of a trace may be, in bytes; that of W3C has 32.
const maxTraceID = 64

// validTraceID reports whether an id is short enough, and text.
func validTraceID(id string) bool { return len(id) <= maxTraceID && utf8.ValidString(id) }

// keepExemplar keeps the call that has just ended as the latest of its bucket, if it has the id of a trace.
func (r *Resource) keepExemplar(id string, rt time.Duration) {
	if id == "" || !validTraceID(id) {
		return
	}
	bucket, _ := slices.BinarySearch(r.c.shape.Options().Bounds, rt) // the first with a bound that is not below
	r.exemplars(true)[bucket].Store(&Exemplar{TraceID: id, RT: rt, At: r.c.now()})
}

// Exemplars are the latest calls with a trace of the resource, at most one for each classic bucket of its histogram,
// the quickest first.
func (r *Resource) Exemplars() (list []Exemplar) {
	if r == nil {
		return nil
	}
	all := r.now().exemplars(false)
	for i := range all {
		if x := all[i].Load(); x != nil {
			list = append(list, *x)
		}
	}
	return list
}

// exemplars are those of the buckets, nil if there are none and none are wanted.
func (r *Resource) exemplars(wanted bool) []atomic.Pointer[Exemplar] {
	if wanted && r.traced.Load() == nil {
		list := make([]atomic.Pointer[Exemplar], len(r.c.shape.Options().Bounds)+1)
		r.traced.CompareAndSwap(nil, &list)
	}
	return loaded(&r.traced)
}
