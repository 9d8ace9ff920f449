package collector

import (
	"context"
	"errors"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Ended is a call that is over, for [Collector.Record].
type Ended struct {
	// RT is how long it took; below 0 counts as 0.
	RT time.Duration
	// Err is the error that it ended with, an exception if [Options].Exception reports so.
	Err error
	// Code is how it was answered; the zero Code is none.
	Code Code
	// TraceID, if it is not empty, is kept as an exemplar, as [Entry.ExitTrace] has it.
	TraceID string
	// Nested marks a call that another one made which is counted, too: so it is no part of the entrance's calls, nor of all calls
	// that enter the process.
	Nested bool
}

// Record counts a call that is over, for callers that learn of calls when they end: it passes and completes in the present second,
// in one change. Nothing is known of when it was in flight, so it is no part of concurrency, and stands at the top of the tree.
// No limit refuses it; those on QPS count it. The options are those of [Collector.Enter]; of these [StartedAt], [Passed],
// [Admitted] and [Prioritized] change nothing. It costs what Enter and Exit do, less a reading of the clock, and allocates
// nothing for a name that is known. A nil Collector records nothing.
func (c *Collector) Record(name string, e Ended, opts ...CallOption) {
	if c == nil {
		return
	}
	var o options
	o.nested = e.Nested
	c.below(context.Background(), &o, opts)
	o.name = name
	failed := e.Err != nil
	defer func() { // also if what is asked about the error panics: then it is an exception
		r := c.record(&e, &o, failed)
		if failed && c.opts.ExceptionClass != nil {
			r.classify(e.Err, o.n)
		}
	}()
	failed = failed && c.isException(e.Err)
}

// isException reports whether an error that is not nil is an exception.
func (c *Collector) isException(err error) bool {
	return errors.Is(err, ErrPanicked) || !errors.Is(err, ErrBlocked) && c.opts.Exception(err)
}

// record counts the call, and returns the resource that it is counted for.
func (c *Collector) record(e *Ended, o *options, failed bool) (r *Resource) {
	_ = c.count(nil, o, func(l *leaf) (err error) { // it has no other than errMoved
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
			defer p.release() // so that the name is known to have been used
			defer unlockAll(list)
		}
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
