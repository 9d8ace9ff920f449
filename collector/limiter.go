package collector

import (
	"sync"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// Limiters of a call
//
// A limiter holds the rules of one name, and counts the passes and the calls in flight that these rules compare with
// their counts. A resource has at most one limiter, and so has a call that the resource of its name records. A call of
// an overflowing name is recorded by another resource, and can have several limiters. The slice "list" in this package
// holds the limiters of one call, in lock order:
//
//	call: resource "GET /a", origin "web"             call: name "GET /b", recorded for _other, origin "web"
//
//	list[0]  Resource.limiter of "GET /a"             list[0]   Resource.limiter of _other: limits on "_other"
//	           all origins: GET /a, GET /*, *         list[1]   the overflow limiter of "GET /b": GET /*, *
//	           origin web:  limits from web
//	                                                  or, while overflowLimiters is full:
//	                                                  list[1:]  one limiter per matching pattern, sorted: *, GET /*
//
// Each limiter holds two sets of quotas, for limits and for dry runs. Each set has a meter for all origins together,
// and a meter for each limited origin. The rules of a set read its meters:
//
//	limiter ─┬─ quotas ─┬─ all      ── passes, inFlight ←── rules without Origin
//	         │          └─ origins  ── passes, inFlight ←── rules with Origin
//	         └─ dry ──── (the same; passes that the dry runs admit, and calls that they would refuse)
//
// Lock order
//
//	Collector.limitsMu → Collector.mu → overflowLimiters.mu → limiter of the recording resource (list[0])
//	→ overflow limiters (list[1:], sorted by pattern) → locks of a node.View → locks of a node.Statistic
//
// No goroutine locks a limiter while it holds the lock of a statistic. Calls lock all of list (lockAll), and then the
// stripe that records the call (node.Statistic.Hold). The quotas therefore count a pass in the same bucket as the
// leaf, and no other call intervenes between check and count. The decision reads no leaf, so its cost does not depend
// on the number of origins.

// limiter holds the rules of one name and the meters that they read. The name belongs to a resource, or is an
// overflowing name that another resource, such as [Other], records. A limiter outlives its rules: after SetLimits,
// the new rules start with the existing meters.
//
// The leaves of a resource count its calls in flight in the meters, see [node.Statistic.SetCounters], including calls
// that entered before there was a limit. An overflowing name has no leaf; its calls hold a reservation until they end.
// When an overflowing name gets a resource, the resource takes over the limiter. The limiter then counts both kinds of
// calls, until the calls with a reservation have ended.
type limiter struct {
	mu     sync.Mutex
	c      *Collector
	quotas             // of the limits that refuse calls
	dry    quotas      // of the dry runs
	self   [1]*limiter // the limiters of a call without a reservation

	dryCounts []labelled[dryCount] // by reason, including former dry runs; used for resources only

	// The following fields belong to limiters in overflowLimiters, which refresh their rules when a call locks them:
	name     string   // the name or the pattern; empty for the limiter of a resource
	rules    *ruleSet // source of the rules
	lastPass int64    // second of the last reserved call; 0 before the first
	shared   bool     // many names that match the pattern share the limiter
	dropped  bool     // the limiter is no longer in the table; calls must look up the name again
}

// newLimiter returns a limiter without rules. The name is empty for the limiter of a resource.
func newLimiter(c *Collector, name string, shared bool) *limiter {
	m := &limiter{c: c, name: name, shared: shared}
	m.self[0] = m
	if name != "" {
		m.all.passes = c.newQuota()
	}
	return m
}

// set returns the quotas of the dry runs, or of the limits that refuse calls.
func (m *limiter) set(dry bool) *quotas {
	if dry {
		return &m.dry
	}
	return &m.quotas
}

// newQuota returns an empty record of passes. The rules that read it set the count, see [node.Quota.With].
func (c *Collector) newQuota() *node.Quota { return node.NewQuota(c.shape, 0, true) }

// lockAll locks the limiters of a call, in order. If one of them was dropped, it locks none and returns errMoved.
func lockAll(list []*limiter) error {
	for i, m := range list {
		m.mu.Lock()
		if m.dropped {
			unlockAll(list[:i+1])
			return errMoved
		}
		if m.name != "" {
			m.refresh()
		}
	}
	return nil
}

func unlockAll(list []*limiter) {
	for _, m := range list {
		m.mu.Unlock()
	}
}

// setRules replaces the rules and keeps the meters. r is the resource of the limiter, or nil for an overflowing name.
// If no rule has read the passes of a resource before, setRules takes them from the views of the resource. m.mu must be
// held.
func (m *limiter) setRules(limits []Limit, r *Resource) {
	m.quotas.removeRules()
	m.dry.removeRules()
	for _, l := range limits {
		// Dry runs count their own passes. They subtract the calls that they would have refused from the calls in
		// flight.
		x := rule{Limit: l, meter: m.meter(l.Origin)}
		set, own := &m.quotas, x.meter
		if l.DryRun {
			set, own = &m.dry, m.dry.meter(l.Origin)
			x.refused = own
		}
		if l.Grade != QPS {
			x.readsInFlight, own.readsInFlight = true, true
			set.concurrency = append(set.concurrency, x)
			continue
		}
		own.readsPasses = true
		if own.passes == nil {
			own.passes = m.passesSoFar(x.meter, r, l.Origin)
		}
		x.quota = own.passes.With(l.Count, l.Strict)
		set.qps = append(set.qps, x)
	}
	m.quotas.dropUnused(r != nil) // an overflowing name has no view to take the passes from later
	m.dry.dropUnused(true)
}

// passesSoFar returns the recent passes of an origin. If r is nil, the name is overflowing, and its passes come from x.
// Otherwise they come from the views of r; if the name was overflowing before it got the resource r, its passes from
// that time are added.
func (m *limiter) passesSoFar(x *meter, r *Resource, origin string) *node.Quota {
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
	if x.overflowPasses != nil {
		q.Add(x.overflowPasses)
	}
	return q
}

// refresh updates the rules of an overflow limiter to the limits in force. m.mu must be held.
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
	m.setRules(rules.forSubjects(patterns), nil)
}

// limits returns the limits that refuse calls.
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

// enterReserved counts a call with a reservation as in flight. m.mu must be held.
func (m *limiter) enterReserved(origin string) {
	m.lastPass = m.c.second()
	m.enter(origin)
	if origin == "" {
		return
	}
	if x := m.meter(origin); x.passes == nil {
		x.passes = m.c.newQuota()
	}
}

// counters returns the counters that the leaves of an origin must update with their calls in flight. m.mu must be held.
func (m *limiter) counters(origin string) (list []*atomic.Int64) {
	if m.all.readsInFlight {
		list = append(list, &m.all.inFlight)
	}
	if x := m.origins[origin]; x != nil && x.readsInFlight {
		list = append(list, &x.inFlight)
	}
	return list
}

// setCounters makes a new leaf count its calls in flight. The collector's mu must be held.
func (m *limiter) setCounters(l *leaf) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.SetCounters(m.counters(l.origin)...)
}

// inUse reports whether the limiter counts recent calls that the leaves of its resource do not: calls of its name that
// another resource records. They are in flight, or passed in the second since or later. m may be nil.
func (m *limiter) inUse(since int64) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.inFlight.Load() > 0 || m.lastPass >= since && m.lastPass > 0
}
