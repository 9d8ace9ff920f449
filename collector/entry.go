package collector

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/node"
)

// ErrPanicked is the error of a call whose function did not return, because the function panicked or called
// runtime.Goexit. Such a call always counts as an exception.
var ErrPanicked = errors.New("collector: panicked")

// Entry is a call in flight. Do not copy an Entry: the copy would end the call a second time. The zero Entry represents
// no call, and its methods do nothing.
//
// The methods End, Exit, ExitCode and ExitTrace end the call. Once the call has ended, these methods do nothing. Any
// goroutine may end the call. Entries may end in any order.
//
// The note of a call is a number that node.Call stores for the Collector. When the call ends, the method end reads the
// note. It then updates the limiters of the reservation, and empties the slot:
//
//	bit 31      1 if the call has a reservation (a list of limiters); the constant reserved is this bit
//	bits 0-30   number of the call's slot in Collector.running; 0 if the call has no frame;
//	            the constant unlisted if no slot was free
type Entry struct {
	call node.Call // with the note described above
	at   *place
}

// End ends the call with *err when the calling function returns. Use it with defer:
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
// If the pointer is nil, the call ends without an error. If the calling function panics, the call counts as an
// exception with the error [ErrPanicked], and the panic continues. End detects the panic only if End itself is
// deferred, not if another deferred function calls End. End treats runtime.Goexit as a normal return; only
// [Resource.Do] and [Collector.Do] detect Goexit.
func (e *Entry) End(err *error) {
	if reason := recover(); reason != nil {
		defer panic(reason) // continues the panic, even if Options.Exception panics
		e.Exit(ErrPanicked)
		return
	}
	if err == nil {
		e.Exit(nil)
		return
	}
	e.Exit(*err)
}

// Exit ends the call. It records the response time and, if the call failed with err, an exception. The call is then no
// longer in flight. A reader sees either all of these changes or none. [Options].Exception decides which errors are
// failures.
//
// Do not write "defer e.Exit(err)": Go evaluates err at the defer statement, so every call would count as successful.
// See [Entry.End].
func (e *Entry) Exit(err error) {
	// This block repeats the method end, to save a function call.
	if note := e.call.Note(); err == nil && note&reserved == 0 {
		if e.call.End(false, 0) > 0 && note != 0 {
			e.at.leaf.resource.c.running.empty(note)
		}
		return
	}
	e.exit(err, Code{})
}

// reserved is the bit of a call's note that marks a call with a reservation (a list of limiters to update when the call
// ends). The other bits hold the number of a slot in Collector.running.
const reserved = 1 << 31

// end ends the call and returns the number of completions that it has counted: 1, the size of a batch, or 0 if the call
// had ended before.
func (e *Entry) end(failed bool, code Code) (n int64) {
	note, c := e.call.Note(), e.at.leaf.resource.c
	if note&reserved == 0 {
		n = e.call.End(failed, code.n)
	} else if n = e.at.reserved.end(&e.call, failed, code.n); n > 0 {
		c.reservationsInUse.Add(-1)
	}
	if n > 0 {
		c.running.empty(note &^ reserved)
	}
	return n
}

// markReserved sets the bit reserved in the call's note, and adds 1 to Collector.reservationsInUse. If the bit is
// already set, markReserved does nothing.
func (e *Entry) markReserved() {
	if note := e.call.Note(); note&reserved == 0 {
		e.call.SetNote(note | reserved)
		e.at.leaf.resource.c.reservationsInUse.Add(1)
	}
}

// exit ends the call with err and returns the number of completions that it has counted. [Options].Exception decides
// whether err is an exception. If that function panics, the call ends as an exception. exit also counts an exception
// under its class: see classify.
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
	return 0 // the deferred function sets n
}

// classify counts n exceptions under the class of err. If [Options].ExceptionClass panics, the class is [Unspecified].
func (r *Resource) classify(err error, n int64) {
	class := ""
	defer func() { r.exceptions.add(class, n) }()
	class = r.c.opts.ExceptionClass(err)
}

// run calls f and ends the call with the error of f. If f does not return, run ends the call with ErrPanicked.
func (e *Entry) run(f func() error) (err error) {
	err = ErrPanicked // err keeps this value if f does not return
	defer func() { e.Exit(err) }()
	err = f()
	return err
}

// ExitCode is [Entry.Exit] for a call with a result code. The completion and its code are counted in one step, so the
// counts of all codes always add up to the completions. With the zero Code, ExitCode equals Exit. It costs a few
// nanoseconds more than Exit.
func (e *Entry) ExitCode(err error, code Code) { e.exit(err, code) }

// ExitTrace is [Entry.ExitCode] for a call that is part of a trace. It keeps id, the trace ID of the call, as an
// [Exemplar]: the resource keeps the latest ID for each bucket of its histogram of response times.
// [node.Options].Bounds sets the buckets. ExitTrace ignores an id that is empty, longer than 64 bytes, or not valid
// UTF-8.
//
// ExitTrace costs an allocation and two clock readings more than Exit. Use it only for calls whose trace is recorded.
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

// Exemplar describes one call as an example of a bucket of a histogram: the response time of the call lies in the
// bucket. The trace ID links the bucket to the trace of the call.
type Exemplar struct {
	TraceID string
	RT      time.Duration
	// At is the end of the call.
	At time.Time
}

// maxTraceID is the maximum length of a trace ID in bytes. A W3C trace ID has 32 bytes.
const maxTraceID = 64

// validTraceID reports whether id is short enough and valid UTF-8.
func validTraceID(id string) bool { return len(id) <= maxTraceID && utf8.ValidString(id) }

// keepExemplar stores the trace ID and the response time rt of a call that has just ended. They become the latest
// exemplar of the histogram bucket of rt. keepExemplar does nothing if id is not a valid trace ID.
func (r *Resource) keepExemplar(id string, rt time.Duration) {
	if id == "" || !validTraceID(id) {
		return
	}
	// Find the first bucket with an upper bound of at least rt.
	bucket, _ := slices.BinarySearch(r.c.shape.Options().Bounds, rt)
	r.exemplars(true)[bucket].Store(&Exemplar{TraceID: id, RT: rt, At: r.c.now()})
}

// Exemplars returns the latest call with a trace ID for each bucket of the resource's histogram, the fastest call
// first. Buckets without an exemplar are omitted.
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

// exemplars returns the exemplars by bucket of the histogram. If the resource never had an exemplar, there is no list
// yet: exemplars then allocates the list if create is true, and returns nil otherwise.
func (r *Resource) exemplars(create bool) []atomic.Pointer[Exemplar] {
	if create && r.traced.Load() == nil {
		list := make([]atomic.Pointer[Exemplar], len(r.c.shape.Options().Bounds)+1)
		r.traced.CompareAndSwap(nil, &list)
	}
	return loaded(&r.traced)
}
