package collector

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/node"
)

// quotas holds rules of a name, and the meters that the rules read. A limiter has one set for limits and one set for
// dry runs. The limiter's mu guards both sets.
type quotas struct {
	qps, concurrency []rule
	all              meter             // counts all calls of the name
	origins          map[string]*meter // by origin; each meter counts the calls of one origin
}

// meter counts the calls of a name, or the calls that one origin makes to the name. Three fields hold counts. The table
// shows which calls change a field, and in parentheses which code changes it:
//
//	inFlight        calls of the resource's leaves, while readsInFlight is set (node.Statistic);
//	                calls with a reservation (enter, leave)
//	passes          calls that pass (pass, eachQuota); calls that borrow or cancel a loan (eachQuota)
//	overflowPasses  none (overflowLimiters.remove sets the field once; soon its passes are too old to count)
//
// In a meter of dry runs, inFlight counts only the calls in flight that the dry runs would have refused.
type meter struct {
	inFlight atomic.Int64 // includes calls that wait for a bucket
	// Counts passes; nil until a rule reads passes. Limiters of overflowing names count passes even without a rule.
	passes         *node.Quota
	overflowPasses *node.Quota // passes of the name before it got its resource; usually nil
	readsPasses    bool        // a rule reads passes
	readsInFlight  bool        // a rule reads inFlight
}

// rule is a limit and the meter that the limit reads. The limit compares the counts of the meter with Limit.Count.
type rule struct {
	Limit
	*meter
	quota   *node.Quota // passes of the meter, compared with the limit's Count; nil for concurrency
	refused *meter      // for dry runs, the meter in limiter.dry, to subtract its inFlight; nil for limits
}

// covers reports whether the rule applies to calls of the origin.
func (x *rule) covers(origin string) bool { return x.Origin == "" || x.Origin == origin }

// meter returns the meter of an origin, and creates it if necessary. If origin is empty, meter returns the meter of all
// origins together.
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

// hasRules reports whether there are rules.
func (s *quotas) hasRules() bool { return len(s.qps) > 0 || len(s.concurrency) > 0 }

// removeRules removes the rules. The meters stay. dropUnused later removes the meters that no rule reads.
func (s *quotas) removeRules() {
	s.qps, s.concurrency = nil, nil
	s.all.readsPasses, s.all.readsInFlight = false, false
	for _, x := range s.origins {
		x.readsPasses, x.readsInFlight = false, false
	}
}

// dropUnused drops the unused meters of origins. If forget is true, it also drops the counts of passes that no rule
// reads.
func (s *quotas) dropUnused(forget bool) {
	s.all.forgetPasses(forget)
	maps.DeleteFunc(s.origins, func(_ string, x *meter) bool {
		x.forgetPasses(forget)
		return x.unused()
	})
}

// copyPasses replaces the passes in the meters of s by copies of the passes in the meters of o. Afterwards s and o
// count separately. The calls in flight that o counts are not copied, because their reservations update o when the
// calls end.
func (s *quotas) copyPasses(c *Collector, o *quotas) {
	if o.all.passes != nil {
		s.all.passes = c.copyQuota(o.all.passes)
	}
	for origin, x := range o.origins {
		if x.passes != nil {
			s.meter(origin).passes = c.copyQuota(x.passes)
		}
	}
}

// copyQuota returns a copy of the quota original. The copy and the original then count separately.
func (c *Collector) copyQuota(original *node.Quota) *node.Quota {
	q := c.newQuota()
	q.Add(original)
	return q
}

// forgetPasses drops x.passes if forget is true and no rule reads the passes.
func (x *meter) forgetPasses(forget bool) {
	if forget && !x.readsPasses {
		x.passes = nil
	}
}

// unused reports whether the meter x of an origin can be dropped, because no rule reads it, it counts no call in
// flight, and it has no overflowPasses.
func (x *meter) unused() bool {
	return !x.readsPasses && !x.readsInFlight && x.overflowPasses == nil && x.inFlight.Load() == 0
}

// enter adds 1 to the calls in flight of the origin, and of all origins together. The caller must later call leave
// exactly once. Until then the meter of the origin exists, even if no rule reads it.
func (s *quotas) enter(origin string) {
	s.all.inFlight.Add(1)
	if origin != "" {
		s.meter(origin).inFlight.Add(1)
	}
}

// leave undoes one call of enter with the same origin.
func (s *quotas) leave(origin string) {
	s.all.inFlight.Add(-1)
	if x := s.origins[origin]; origin != "" {
		if x.inFlight.Add(-1); x.unused() {
			delete(s.origins, origin)
		}
	}
}

// checkConcurrency returns an error if a limit on concurrency refuses one more call of the origin. The parameter
// waiting is 1 if the call has waited for a bucket, because inFlight then includes the call already. Otherwise waiting
// is 0.
//
// The number that checkConcurrency reads can be too high, because calls end concurrently. It is never too low, because
// calls enter only while they hold the limiter's lock.
func (s *quotas) checkConcurrency(origin string, waiting int64) *BlockedError {
	for i := range s.concurrency { // ranging over values would copy each rule
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

// checkQPS returns an error if a limit on QPS refuses n more passes of the origin in the bucket. It makes two
// comparisons for each rule. The first check in a bucket also adds up all buckets of each rule's quota.
func (s *quotas) checkQPS(bucket time.Duration, n int64, origin string) *BlockedError {
	for i := range s.qps {
		if x := &s.qps[i]; x.covers(origin) && !x.quota.CanPass(bucket, n) {
			return &BlockedError{Limit: x.Limit, Reading: x.quota.Passes(bucket)}
		}
	}
	return nil
}

// firstBorrowable returns the first bucket after the open bucket in which all rules for the origin have quota for n
// passes. The parameter at is the start of the open bucket. The result does not start before the time earliest. If
// there is no such bucket, ok is false. If no rule applies to the origin, firstBorrowable returns earliest, and ok is
// true.
func (s *quotas) firstBorrowable(at, earliest time.Duration, n int64, origin string) (bucket time.Duration, ok bool) {
	bucket = earliest
	for i := range s.qps {
		if x := &s.qps[i]; x.covers(origin) {
			if bucket, ok = x.quota.TryOccupyNext(at, bucket, n); !ok {
				return 0, false
			}
		}
	}
	return bucket, true
}

// pass counts n passes of the origin in the bucket. Up to two meters count them: the meter of all origins together, and
// the meter of this origin. If no origin has a meter, pass saves the lookup in the map of origins.
func (s *quotas) pass(bucket time.Duration, n int64, origin string) {
	if q := s.all.passes; q != nil {
		q.Pass(bucket, n)
	}
	if len(s.origins) > 0 {
		s.passFrom(bucket, n, origin)
	}
}

// passFrom counts n passes in the meter of the origin, if the origin has a meter that counts passes. pass calls it only
// if an origin of the name has a meter, which is rare.
func (s *quotas) passFrom(bucket time.Duration, n int64, origin string) {
	if x := s.origins[origin]; x != nil && x.passes != nil {
		x.passes.Pass(bucket, n)
	}
}
