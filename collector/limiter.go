package collector

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/node"
)

// limiter holds the rules for one name, and counts what they limit: for a resource that has the name, or for a name that
// another resource counts, such as [Other]. It outlives its rules: when limits are replaced, the new ones find what the old ones have seen.
//
// The calls in flight of a resource are counted by its leaves, see [node.Statistic.SetCounters], so that those count that entered
// when there was no limit. A name that another resource counts has no leaf; its calls hold a reservation until they end. A
// name that gets a resource after that takes its limiter along, and has both kinds of calls for a while.
type limiter struct {
	mu               sync.Mutex
	qps, concurrency []rule
	all              meter             // all calls of the name
	origins          map[string]*meter // those of single origins

	// slot is the place of a name in the table of names; nil for a resource that never was there.
	slot *slot
}

// meter is what rules read: how many calls are in flight, and the passes of the last second.
type meter struct {
	inFlight atomic.Int64 // those that wait for a bucket included
	passes   *node.Quota  // nil while nobody reads it
	before   *node.Quota  // passes of the name while another resource counted it; nil if there are none
	ruled    bool         // a rule is for the origin
	read     bool         // a rule reads passes
	counts   bool         // a rule reads what is in flight
}

// rule is a limit with what it reads.
type rule struct {
	Limit
	*meter
	quota *node.Quota // of the meter's passes; nil for concurrency
}

// covers reports whether the rule is for calls of the origin.
func (x *rule) covers(origin string) bool { return x.Origin == "" || x.Origin == origin }

// meter finds or makes the meter of an origin, or of all origins together for the empty name. Holds mu.
func (m *limiter) meter(origin string) *meter {
	if origin == "" {
		return &m.all
	}
	x := m.origins[origin]
	if x == nil {
		x = new(meter)
		if m.origins == nil {
			m.origins = map[string]*meter{}
		}
		m.origins[origin] = x
	}
	return x
}

// set replaces the rules. The meters stay; first calls for a meter whose passes are about to be read, and were not before.
// Holds mu.
func (m *limiter) set(limits []Limit, first func(origin string, x *meter) *node.Quota) {
	m.all.read, m.all.counts = false, false
	for _, x := range m.origins {
		x.ruled, x.read, x.counts = false, false, false
	}
	m.qps, m.concurrency = nil, nil
	for _, l := range limits {
		x := m.meter(l.Origin)
		x.ruled = true
		if l.Grade != QPS {
			x.counts = true
			m.concurrency = append(m.concurrency, rule{Limit: l, meter: x})
			continue
		}
		if x.passes == nil {
			x.passes = first(l.Origin, x)
		}
		x.read = true
		m.qps = append(m.qps, rule{l, x, x.passes.With(l.Count, l.Strict)})
	}
	if m.slot == nil || m.slot.moved { // otherwise nobody else knows the passes
		m.all.forget()
		for _, x := range m.origins {
			x.forget()
		}
	}
	maps.DeleteFunc(m.origins, func(_ string, x *meter) bool { return !x.ruled && x.before == nil && x.inFlight.Load() == 0 })
}

// forget forgets the passes if nobody reads them.
func (x *meter) forget() {
	if !x.read {
		x.passes = nil
	}
}

// limits are the limits of the rules.
func (m *limiter) limits() (list []Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rules := range [...][]rule{m.qps, m.concurrency} {
		for i := range rules {
			list = append(list, rules[i].Limit)
		}
	}
	return list
}

// full refuses one more call of the origin if a limit on concurrency has no room for it; nil if all have.
// Calls that end meanwhile make the reading too high, never too low, and those that enter wait for mu. Holds mu.
func (m *limiter) full(origin string) *BlockedError {
	for i := range m.concurrency {
		x := &m.concurrency[i]
		if inFlight := x.inFlight.Load(); inFlight >= x.Count && x.covers(origin) {
			return &BlockedError{Limit: x.Limit, Reading: inFlight}
		}
	}
	return nil
}

// exceeded refuses n more calls of the origin in the bucket if they would exceed a limit on QPS; nil if there is none. Holds mu.
func (m *limiter) exceeded(bucket time.Duration, n int64, origin string) *BlockedError {
	for i := range m.qps {
		if x := &m.qps[i]; x.covers(origin) && !x.quota.CanPass(bucket, n) {
			return &BlockedError{Limit: x.Limit, Reading: x.quota.Passes(bucket)}
		}
	}
	return nil
}

// lender is the first bucket, not before the bucket from, in which all limits have room to borrow from at the bucket at;
// ok is false if there is none. Holds mu.
func (m *limiter) lender(at, from time.Duration, n int64, origin string) (bucket time.Duration, ok bool) {
	bucket = from
	for i := range m.qps {
		if x := &m.qps[i]; x.covers(origin) {
			if bucket, ok = x.quota.TryOccupyNext(at, bucket, n); !ok {
				return 0, false
			}
		}
	}
	return bucket, true
}

// pass counts n passes of the origin. Holds mu.
func (m *limiter) pass(bucket time.Duration, n int64, origin string) {
	if q := m.all.passes; q != nil {
		q.Pass(bucket, n)
	}
	if len(m.origins) > 0 {
		m.passFrom(bucket, n, origin)
	}
}

func (m *limiter) passFrom(bucket time.Duration, n int64, origin string) {
	if x := m.origins[origin]; x != nil && x.passes != nil {
		x.passes.Pass(bucket, n)
	}
}

// count calls f with the passes that a call of the origin counts for. Holds mu.
func (m *limiter) count(origin string, f func(*node.Quota)) {
	if q := m.all.passes; q != nil {
		f(q)
	}
	if x := m.origins[origin]; x != nil && x.passes != nil {
		f(x.passes)
	}
}

// take counts a call of a name that has no leaf; first makes the passes of an origin of which nothing is known. Holds mu.
func (m *limiter) take(origin string, first func(string, *meter) *node.Quota) {
	m.all.inFlight.Add(1)
	if origin == "" {
		return
	}
	x := m.meter(origin)
	if x.inFlight.Add(1); x.passes == nil {
		x.passes = first(origin, x)
	}
}

// put takes back what take counted. Holds mu.
func (m *limiter) put(origin string) {
	m.all.inFlight.Add(-1)
	if x := m.origins[origin]; origin != "" && x.inFlight.Add(-1) == 0 && !x.ruled && x.before == nil {
		delete(m.origins, origin)
	}
}

// counters are the meters that must know the calls in flight of the origin. Holds mu.
func (m *limiter) counters(origin string) (list []*atomic.Int64) {
	if m.all.counts {
		list = append(list, &m.all.inFlight)
	}
	if x := m.origins[origin]; x != nil && x.counts {
		list = append(list, &x.inFlight)
	}
	return list
}
