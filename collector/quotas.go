package collector

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/node"
)

// quotas are rules for one name, and what they read. The lock of the limiter guards them.
type quotas struct {
	qps, concurrency []rule
	all              meter             // all calls of the name
	origins          map[string]*meter // those of single origins
}

// meter is what rules read: how many calls are in flight, and the passes of the last second.
type meter struct {
	inFlight atomic.Int64 // those that wait for a bucket included
	passes   *node.Quota  // nil while nobody reads it
	before   *node.Quota  // passes of the name while another resource counted it; nil if there are none
	read     bool         // a rule reads passes
	counts   bool         // a rule reads what is in flight
}

// rule is a limit with what it reads.
type rule struct {
	Limit
	*meter
	quota   *node.Quota // of the passes that count for it; nil for concurrency
	refused *meter      // what is in flight and would have been refused; nil unless it is a dry run
}

// covers reports whether the rule is for calls of the origin.
func (x *rule) covers(origin string) bool { return x.Origin == "" || x.Origin == origin }

// meter finds or makes the meter of an origin, or of all origins together for the empty name.
func (s *quotas) meter(origin string) *meter {
	if origin == "" {
		return &s.all
	}
	x := s.origins[origin]
	if x == nil {
		x = new(meter)
		if s.origins == nil {
			s.origins = map[string]*meter{}
		}
		s.origins[origin] = x
	}
	return x
}

// any reports whether there are rules.
func (s *quotas) any() bool { return len(s.qps) > 0 || len(s.concurrency) > 0 }

// reset takes the rules away. The meters stay until drop.
func (s *quotas) reset() {
	s.qps, s.concurrency = nil, nil
	s.all.read, s.all.counts = false, false
	for _, x := range s.origins {
		x.read, x.counts = false, false
	}
}

// drop drops the meters that are of no use, and with forget the passes that nobody reads.
func (s *quotas) drop(forget bool) {
	s.all.drop(forget)
	maps.DeleteFunc(s.origins, func(_ string, x *meter) bool { return x.drop(forget) })
}

// inherit takes over the passes of others.
func (s *quotas) inherit(c *Collector, o *quotas) {
	if o.all.passes != nil {
		s.all.passes = c.copied(o.all.passes)
	}
	for origin, x := range o.origins {
		if x.passes != nil {
			s.meter(origin).passes = c.copied(x.passes)
		}
	}
}

// copied is passes that are counted on for themselves.
func (c *Collector) copied(passes *node.Quota) *node.Quota {
	q := c.newQuota()
	q.Add(passes)
	return q
}

// drop forgets the passes if it may and nobody reads them, and reports whether the meter is unused.
func (x *meter) drop(forget bool) bool {
	if forget && !x.read {
		x.passes = nil
	}
	return x.unused()
}

// unused reports whether nothing is lost if an origin has no meter.
func (x *meter) unused() bool {
	return !x.read && !x.counts && x.before == nil && x.inFlight.Load() == 0
}

// enter counts a call of the origin in flight.
func (s *quotas) enter(origin string) {
	s.all.inFlight.Add(1)
	if origin != "" {
		s.meter(origin).inFlight.Add(1)
	}
}

// leave takes back what enter counted.
func (s *quotas) leave(origin string) {
	s.all.inFlight.Add(-1)
	if x := s.origins[origin]; origin != "" {
		if x.inFlight.Add(-1); x.unused() {
			delete(s.origins, origin)
		}
	}
}

// full refuses one more call of the origin if a limit on concurrency is reached; nil if none is. Waiting is how many calls in flight
// are the call itself: 1 if it has waited. Calls that end meanwhile make the reading too high, never too low, and those that enter
// wait for the lock.
func (s *quotas) full(origin string, waiting int64) *BlockedError {
	for i := range s.concurrency {
		x := &s.concurrency[i]
		inFlight := x.inFlight.Load() - waiting
		if x.refused != nil {
			inFlight -= x.refused.inFlight.Load()
		}
		if inFlight >= x.Count && x.covers(origin) {
			return &BlockedError{Limit: x.Limit, Reading: inFlight}
		}
	}
	return nil
}

// exceeded refuses n more calls of the origin in the bucket if they would exceed a limit on QPS; nil if there is none.
func (s *quotas) exceeded(bucket time.Duration, n int64, origin string) *BlockedError {
	for i := range s.qps {
		if x := &s.qps[i]; x.covers(origin) && !x.quota.CanPass(bucket, n) {
			return &BlockedError{Limit: x.Limit, Reading: x.quota.Passes(bucket)}
		}
	}
	return nil
}

// lender is the first bucket, not before the bucket from, from which all limits let borrow at the bucket at;
// ok is false if there is none.
func (s *quotas) lender(at, from time.Duration, n int64, origin string) (bucket time.Duration, ok bool) {
	bucket = from
	for i := range s.qps {
		if x := &s.qps[i]; x.covers(origin) {
			if bucket, ok = x.quota.TryOccupyNext(at, bucket, n); !ok {
				return 0, false
			}
		}
	}
	return bucket, true
}

// pass counts n passes of the origin.
func (s *quotas) pass(bucket time.Duration, n int64, origin string) {
	if q := s.all.passes; q != nil {
		q.Pass(bucket, n)
	}
	if len(s.origins) > 0 {
		s.passFrom(bucket, n, origin)
	}
}

func (s *quotas) passFrom(bucket time.Duration, n int64, origin string) {
	if x := s.origins[origin]; x != nil && x.passes != nil {
		x.passes.Pass(bucket, n)
	}
}
