package collector

import (
	"sync"
	"sync/atomic"

	"github.com/windowstat/windowstat/node"
)

// Limiters of a call
//
// A limiter holds the rules (the limits) of one name. It also holds meters, which count passes and calls in flight. A
// rule compares the numbers of a meter with its Count. A call usually has one limiter: the limiter of the resource with
// the call's name. An overflowing name has no resource; another resource records its calls. The call then has the
// limiter of the recording resource, and one or more limiters for the patterns that its own name matches. The slice
// "list" in this package holds all limiters of one call, in lock order. The drawing shows the list of a usual call on
// the left, and the list of a call with an overflowing name on the right:
//
//	call: resource "GET /a", origin "web"             call: name "GET /b", recorded for _other, origin "web"
//
//	list[0]  Resource.limiter of "GET /a"             list[0]   Resource.limiter of _other: limits on "_other"
//	           all origins: GET /a, GET /*, *         list[1]   the overflow limiter of "GET /b": GET /*, *
//	           origin web:  limits from web
//	                                                  or, while overflowLimiters is full:
//	                                                  list[1:]  one limiter per matching pattern, sorted: *, GET /*
//
// There is a third kind of call. Its name has a resource, but _other records the call, because there was no memory for
// a leaf of this resource. If limits apply to this resource, list[1] is the limiter of this resource.
//
// Each limiter has two sets of quotas: one for limits, one for dry runs. Each set has a meter for all origins together,
// and a meter for each limited origin. The rules of a set read the meters of the set, with one exception (see
// rule.refused):
//
//	limiter ─┬─ quotas ─┬─ all      ── passes, inFlight ←── rules without Origin
//	         │          └─ origins  ── passes, inFlight ←── rules with Origin
//	         └─ dry ──── (the same; passes that the dry runs admit, and calls that they would refuse)
//
// Lock order
//
//	Collector.limitsMu → Collector.mu → overflowLimiters.mu → limiter of the recording resource (list[0])
//	→ limiter of the resource with the call's name → overflow limiters, sorted by pattern
//	→ locks of a node.View → locks of a node.Statistic
//
// No goroutine locks a limiter while it holds the lock of a statistic. A call first locks all limiters of its list
// (lockAll), and then a part of the statistic that records the call (node.Statistic.Hold). Two guarantees follow: the
// quotas count a pass in the same bucket as the leaf that records the call, and no other call can pass between the
// check of a call and its counting. The check reads meters and no leaf, so its cost does not depend on the number of
// origins.

// limiter holds the rules of one name and the meters that the rules read. The name is the name of a resource, or an
// overflowing name. A limiter outlives its rules: after SetLimits, the new rules continue with the existing meters.
//
// Calls in flight are counted in two ways. The leaves of a resource count their calls in the meters: see
// [node.Statistic.SetCounters]. The meters then include calls that entered before there was a limit. An overflowing
// name has no leaf; each of its calls has a reservation instead. The reservation counts the call until the call ends.
// When an overflowing name gets a resource, the resource takes over the limiter. The limiter then counts both kinds of
// calls, until the calls with a reservation have ended.
type limiter struct {
	mu     sync.Mutex
	c      *Collector
	quotas             // rules and meters of the limits that refuse calls
	dry    quotas      // rules and meters of the dry runs
	self   [1]*limiter // list of the limiters of a call without a reservation: only this limiter

	dryCounts []labelled[dryCount] // counts of each dry run, also of removed ones; empty for an overflowing name

	// The following fields are for limiters in overflowLimiters. SetLimits does not change the rules of these limiters:
	// lockAll refreshes the rules when a call locks the limiter.
	name     string   // overflowing name or pattern; empty for the limiter of a resource
	rules    *ruleSet // value of Collector.limits at the last refresh
	lastPass int64    // index of the second in which the latest call with a reservation entered; 0 if there was none
	shared   bool     // name is a pattern, and several names share the limiter
	dropped  bool     // no longer in overflowLimiters; a call that finds this limiter must look up its name again
}

// newLimiter returns a limiter without rules. The name is empty for the limiter of a resource. If shared is true, name
// is a pattern.
func newLimiter(c *Collector, name string, shared bool) *limiter {
	m := &limiter{c: c, name: name, shared: shared}
	m.self[0] = m
	if name != "" {
		m.all.passes = c.newQuota()
	}
	return m
}

// set returns the quotas of the dry runs if dry is true, or else the quotas of the limits that refuse calls.
func (m *limiter) set(dry bool) *quotas {
	if dry {
		return &m.dry
	}
	return &m.quotas
}

// newQuota returns a quota without passes. The quota counts passes, but no rule uses it to check a call. Instead, each
// rule derives its own quota from this quota, with the rule's Count and the same passes; see [node.Quota.With].
func (c *Collector) newQuota() *node.Quota { return node.NewQuota(c.shape, 0, true) }

// lockAll locks the limiters of a call in the order of list, and refreshes the rules of limiters in overflowLimiters.
// If a limiter of list was dropped, lockAll unlocks all limiters again and returns errMoved.
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

// setRules replaces the rules of m: each of the given limits gets a new rule. The new rules read the existing meters.
// setRules creates missing meters, and drops meters that are no longer in use. r is the resource of the limiter, or nil
// for an overflowing name. If a new rule reads passes and its meter has not counted passes so far, setRules fills the
// meter with the recent passes; see passesSoFar. m.mu must be held.
func (m *limiter) setRules(limits []Limit, r *Resource) {
	m.quotas.removeRules()
	m.dry.removeRules()
	for _, l := range limits {
		// A dry run reads passes from a meter in m.dry. It reads the calls in flight from the meter of the limits in
		// m.quotas, and subtracts the calls in flight that dry runs would have refused.
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
	m.quotas.dropUnused(r != nil) // keep the passes of an overflowing name, because no view has these passes
	m.dry.dropUnused(true)
}

// passesSoFar returns the recent passes of an origin, or of all origins if origin is empty. If r is nil, the name of m
// is overflowing, and its passes are in the meter x. Otherwise the passes are in the views of r. If the name was
// overflowing before it got the resource r, passesSoFar adds the passes of that time from the meter x.
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

// refresh sets the rules of a limiter in overflowLimiters to the limits in force, if they have changed. m.mu must be
// held.
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

// limits returns the limits of the rules that refuse calls, without dry runs.
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

// enterReserved counts a call with a reservation as in flight, in the meter of all origins together and in the meter of
// its origin. If the meter of the origin has no quota, enterReserved adds one, so that the meter counts passes, too. It
// also stores the current second in lastPass. m.mu must be held.
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

// counters returns the counters of calls in flight that a leaf with this origin must update. Each counter is the field
// inFlight of a meter. m.mu must be held.
func (m *limiter) counters(origin string) (list []*atomic.Int64) {
	if m.all.readsInFlight {
		list = append(list, &m.all.inFlight)
	}
	if x := m.origins[origin]; x != nil && x.readsInFlight {
		list = append(list, &x.inFlight)
	}
	return list
}

// setCounters makes the new leaf l update the limiter's counters of calls in flight. The collector's mu must be held.
func (m *limiter) setCounters(l *leaf) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.SetCounters(m.counters(l.origin)...)
}

// inUse reports whether the limiter of a resource has counted recent calls that no leaf of the resource recorded. There
// are two kinds of such calls: calls from the time when the name of the resource was overflowing, and calls that Other
// recorded, because there was no memory for a leaf. A call is recent if it is in flight, or if it entered in or after
// the second with the index idleFrom. m may be nil.
func (m *limiter) inUse(idleFrom int64) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.inFlight.Load() > 0 || m.lastPass >= idleFrom && m.lastPass > 0
}
