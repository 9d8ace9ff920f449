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
	c                *Collector
	qps, concurrency []rule
	all              meter             // all calls of the name
	origins          map[string]*meter // those of single origins
	alone            [1]*limiter       // itself, for lists

	// Of one in the table of [names], which keeps its rules up to date:
	name    string   // or pattern; empty for that of a resource
	shared  bool     // it is for many names, all that match the pattern
	rules   *ruleSet // that the rules were made of
	last    int64    // the second in which a call passed last; 0 if none did
	dropped bool     // calls must look for another one
}

// newLimiter makes a limiter without rules, for a resource if the name is empty.
func newLimiter(c *Collector, name string, shared bool) *limiter {
	m := &limiter{c: c, name: name, shared: shared}
	m.alone[0] = m
	if name != "" {
		m.all.passes = c.newQuota()
	}
	return m
}

// newQuota makes passes that have not been counted yet.
func (c *Collector) newQuota() *node.Quota { return node.NewQuota(c.shape, 0, true) }

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

// set replaces the rules, of the resource r or, if that is nil, of a name. The meters stay. What a resource passed, when no rule read
// that, is known by its views. Holds mu.
func (m *limiter) set(limits []Limit, r *Resource) {
	m.all.read, m.all.counts = false, false
	for _, x := range m.origins {
		x.read, x.counts = false, false
	}
	m.qps, m.concurrency = nil, nil
	for _, l := range limits {
		x := m.meter(l.Origin)
		if l.Grade != QPS {
			x.counts = true
			m.concurrency = append(m.concurrency, rule{Limit: l, meter: x})
			continue
		}
		x.read = true
		if x.passes == nil {
			x.fill(m.c, r, l.Origin)
		}
		m.qps = append(m.qps, rule{l, x, x.passes.With(l.Count, l.Strict)})
	}
	if r != nil { // otherwise nobody else knows the passes
		m.all.forget()
		for _, x := range m.origins {
			x.forget()
		}
	}
	maps.DeleteFunc(m.origins, func(_ string, x *meter) bool { return x.unused() })
}

// fill makes the passes of an origin, with what is known of them.
func (x *meter) fill(c *Collector, r *Resource, origin string) {
	x.passes = c.newQuota()
	if r != nil {
		if origin == "" {
			x.passes.Fill(r.view, c.line.Now())
		} else if o := r.origin(origin); o != nil {
			x.passes.Fill(o.view, c.line.Now())
		}
	}
	if x.before != nil {
		x.passes.Add(x.before)
	}
}

// forget forgets the passes if nobody reads them.
func (x *meter) forget() {
	if !x.read {
		x.passes = nil
	}
}

// unused reports whether nothing is lost if an origin has no meter.
func (x *meter) unused() bool {
	return !x.read && !x.counts && x.before == nil && x.inFlight.Load() == 0
}

// refresh gives the limiter of a name the rules that are in force. Holds mu.
func (m *limiter) refresh() {
	rules := m.c.limits.Load()
	if m.rules == rules {
		return
	}
	m.rules = rules
	patterns := []string{m.name}
	if !m.shared {
		patterns = rules.matching(m.name)
	}
	m.set(rules.forAny(patterns), nil)
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

// full refuses one more call of the origin if a limit on concurrency is reached; nil if none is.
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

// lender is the first bucket, not before the bucket from, from which all limits let borrow at the bucket at;
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

// take counts a call of a name that has no leaf. Holds mu.
func (m *limiter) take(origin string) {
	m.last = m.c.second()
	m.all.inFlight.Add(1)
	if origin == "" {
		return
	}
	x := m.meter(origin)
	if x.inFlight.Add(1); x.passes == nil {
		x.passes = m.c.newQuota()
	}
}

// put takes back what take counted. Holds mu.
func (m *limiter) put(origin string) {
	m.all.inFlight.Add(-1)
	if x := m.origins[origin]; origin != "" {
		if x.inFlight.Add(-1); x.unused() {
			delete(m.origins, origin)
		}
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

// setLimits gives the resource its limits: those in force that are for its name, see [ruleSet.forName]. Calls wait from before its
// leaves are read, so that none is missed. Holds the collector's mu.
func (r *Resource) setLimits(limits []Limit) {
	rules := limits
	if r.shared.Load() { // patterns are for each name by itself, the resource's own included
		rules = filter(limits, func(l Limit) bool { return !l.pattern() })
		limits = filter(r.c.limits.Load().list, func(l Limit) bool { return l.pattern() || l.Resource == r.name })
	}
	r.blocks.prune()
	for _, l := range limits {
		r.blocks.add(l.String(), 0) // so that there is a series before the first block
	}
	if r.kept == nil {
		if len(limits) == 0 {
			return
		}
		r.kept = newLimiter(r.c, "", false)
	}
	m := r.kept
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.limiter.Store(m); len(limits) == 0 {
		r.limiter.Store(nil)
	}
	m.set(rules, r)
	for _, t := range r.treeNodes() {
		for _, l := range t.listLeaves() {
			l.SetCounters(m.counters(l.origin)...)
		}
	}
}

// share makes the resource one that counts calls of other names.
func (c *Collector) share(r *Resource) {
	if r.shared.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.shared.Load() && !r.dead.Load() {
		r.shared.Store(true)
		r.setLimits(c.limits.Load().forName(r.name))
	}
}

// countInFlight makes a new leaf count its calls in flight. Holds the collector's mu.
func (m *limiter) countInFlight(l *leaf) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.SetCounters(m.counters(l.origin)...)
}

// busy reports whether calls are in flight that count for the resource and not for its leaves.
func (m *limiter) busy() bool { return m != nil && m.all.inFlight.Load() > 0 }
