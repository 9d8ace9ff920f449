package collector

import (
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Completed describes a completed call, for [Collector.Record].
type Completed struct {
	// RT is the response time. A negative RT counts as 0.
	RT time.Duration
	// Err is the error of the call, or nil. [Options].Exception decides whether the error is an exception.
	Err error
	// Code is the result code; the zero Code means none.
	Code Code
	// TraceID is kept as an exemplar unless it is empty; see [Entry.ExitTrace].
	TraceID string
	// Nested marks a call that another recorded call has made. The views of the entrance and of the process omit a
	// nested call, because they count its caller.
	Nested bool
}

// Record records a completed call, for code that learns of a call only when the call has ended. The call passes and
// completes in the current second, in one step: no reader sees the pass without the completion. The call does not count
// in concurrency, because the Collector does not know when the call was in flight. In the call tree, the resource of
// the call is directly below the entrance. No limit refuses the call, but QPS limits count it.
//
// Record accepts the options of [Collector.Enter]; [StartedAt], [Passed], [Admitted] and [Prioritized] have no effect.
// Record costs as much as Enter and Exit minus one reading of the clock. It allocates nothing if the name is
// registered. A nil Collector records nothing.
func (c *Collector) Record(name string, e Completed, opts ...CallOption) {
	if c == nil {
		return
	}
	var o options
	o.nested = e.Nested
	c.below(context.Background(), &o, opts)
	o.name = name
	failed := e.Err != nil
	defer func() { // runs even if Options.Exception panics; the call is then an exception
		r := c.record(&e, &o, failed)
		if failed && c.opts.ExceptionClass != nil {
			r.classify(e.Err, o.n)
		}
	}()
	failed = failed && c.isException(e.Err)
}

// isException reports whether err is an exception. err must not be nil.
func (c *Collector) isException(err error) bool {
	return errors.Is(err, ErrPanicked) || !errors.Is(err, ErrBlocked) && c.opts.Exception(err)
}

// record records the completed call e with the options o, and returns the resource in which it has recorded the call.
// failed means that the call ended with an exception.
func (c *Collector) record(e *Completed, o *options, failed bool) (r *Resource) {
	_ = c.count(nil, o, func(l *leaf) (err error) { // returns nil or errMoved; count handles errMoved
		r = l.resource
		var p *reservation
		var list []*limiter
		if m := r.limiter.Load(); m != nil {
			if list, p, err = m.reserve(o, l); err == nil {
				err = lockAll(list)
			}
			if err != nil {
				return err
			}
			defer p.release() // countPasses counts the call as in flight, but the call has ended already
			defer unlockAll(list)
		}
		// Hold keeps the current bucket open until bucket.Record below. The quotas of the limits therefore count the
		// pass in the same bucket as the leaf.
		bucket := l.Hold(c.line.Now())
		if bucket.IsZero() {
			return errMoved
		}
		at := bucket.At()
		countPasses(list, at, o.n, p, l.origin)
		eachQuota(list, true, l.origin, func(q *node.Quota) { q.Pass(at, o.n) })
		bucket.Record(e.RT, o.n, failed, e.Code.n)
		return nil
	})
	r.keepExemplar(e.TraceID, e.RT)
	return r
}
