package collector

import (
	"sync"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// limiter holds the rules for one name, and counts what they limit: for a resource that has the name, or for a name that
// another resource counts, such as [Other]. It outlives its rules: when limits are replaced, the new ones find what the old ones have seen.
//
// The calls in flight of a resource are counted by its leaves, see [node.Statistic.SetCounters], so that those count that entered
// when there was no limit. A name that another resource counts has no leaf; its calls hold a reservation until they end. A
// name that gets a resource after that takes its limiter along, and has both kinds of calls for a while.
type limiter struct {
	mu     sync.Mutex
	c      *Collector
	quotas             // of the limits that refuse calls
	dry    quotas      // of the dry runs
	alone  [1]*limiter // itself, for lists

	dryCounts []labelled[dryCount] // of a resource, by reason, also of dry runs that are no more

	// Of one in the table of [names], which keeps its rules up to date:
	name    string   // or pattern; empty for that of a resource
	rules   *ruleSet // that the rules were made of
	last    int64    // the second in which a call passed last; 0 if none did
	shared  bool     // it is for many names, all that match the pattern
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

// of is the quotas of the limits that refuse calls, or of the dry runs.
func (m *limiter) of(dry bool) *quotas {
	if dry {
		return &m.dry
	}
	return &m.quotas
}

// newQuota makes passes that have not been counted yet.
func (c *Collector) newQuota() *node.Quota { return node.NewQuota(c.shape, 0, true) }

// set replaces the rules, of the resource r or, if that is nil, of a name. The meters stay. What a resource passed, when no rule read
// that, is known by its views. Holds mu.
func (m *limiter) set(limits []Limit, r *Resource) {
	m.quotas.reset()
	m.dry.reset()
	for _, l := range limits {
		x := rule{Limit: l, meter: m.meter(l.Origin)}
		of, own := &m.quotas, x.meter
		if l.DryRun {
			of, own = &m.dry, m.dry.meter(l.Origin)
			x.refused = own
		}
		if l.Grade != QPS {
			x.counts, own.counts = true, true
			of.concurrency = append(of.concurrency, x)
			continue
		}
		own.read = true
		if own.passes == nil {
			own.passes = m.known(x.meter, r, l.Origin)
		}
		x.quota = own.passes.With(l.Count, l.Strict)
		of.qps = append(of.qps, x)
	}
	m.quotas.drop(r != nil) // otherwise nobody else knows the passes
	m.dry.drop(true)
}

// known makes the passes of an origin, with what is known of them: by the resource r or, if that is nil, by the meter of the name.
func (m *limiter) known(x *meter, r *Resource, origin string) *node.Quota {
	q := m.c.newQuota()
	switch {
	case r == nil:
		if x.passes != nil {
			q.Add(x.passes)
		}
	case origin == "":
		q.Fill(r.view, m.c.line.Now())
	default:
		if o := r.origin(origin); o != nil {
			q.Fill(o.view, m.c.line.Now())
		}
	}
	if x.before != nil {
		q.Add(x.before)
	}
	return q
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

// take counts a call of a name that has no leaf. Holds mu.
func (m *limiter) take(origin string) {
	m.last = m.c.second()
	m.enter(origin)
	if origin == "" {
		return
	}
	if x := m.meter(origin); x.passes == nil {
		x.passes = m.c.newQuota()
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
	m := r.kept.Load()
	if m == nil {
		if len(limits) == 0 {
			return
		}
		m = newLimiter(r.c, "", false)
		r.kept.Store(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.limiter.Store(m); len(limits) == 0 {
		r.limiter.Store(nil)
	}
	m.set(rules, r)
	m.dryCounts = filter(m.dryCounts, func(x labelled[dryCount]) bool { return x.of.stat != nil })
	for _, l := range limits { // so that there is a series before the first block
		if l.DryRun {
			getOrAdd(&m.dryCounts, l.String())
		} else {
			r.blocks.add(l.String(), 0)
		}
	}
	for l := range r.leaves {
		l.SetCounters(m.counters(l.origin)...)
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
