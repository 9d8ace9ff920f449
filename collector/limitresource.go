package collector

// A resource refers to its limiter in two fields. Calls load Resource.limiter, which is nil while no limit applies.
// Resource.limiterState has the limiter from the first limit on, even while no limit applies. There are two reasons:
// the counts of dry runs stay readable after the limits are removed, and calls with a reservation update the limiter
// when they end.
//
// A resource that records calls of other names (Resource.fallback) has a limiter if any limit exists. The rules of this
// limiter are only the limits without a *. The limits with patterns are in other limiters. If the name of a call has no
// resource, or is the name of the recording resource itself, the patterns are in the limiters of overflowLimiters. If
// the name has another resource, but there is no memory for a leaf of that resource, the patterns are in the limiter of
// that resource.

// Limit returns the Count of the lowest limit with this grade that covers all calls of the resource together. It
// ignores dry runs, and limits on single origins. For [Other] and for fallback resources it also ignores patterns,
// because a pattern limits each name separately. If no limit is left, ok is false. While Limit reads the rules, it
// holds a lock, and calls of the resource that are subject to a limit wait.
func (r *Resource) Limit(grade Grade) (count int64, ok bool) {
	if r == nil {
		return 0, false
	}
	r = r.now()
	m := r.limiter.Load()
	if m == nil {
		return 0, false
	}
	for _, x := range m.limits() {
		if x.Grade == grade && x.Origin == "" && (!ok || x.Count < count) {
			count, ok = x.Count, true
		}
	}
	return count, ok
}

// setLimits sets the limits of the resource. The parameter limits must be the result of [ruleSet.forName] for the name
// of the resource. setLimits locks the limiter before it reads the leaves, so the limiter misses no call in flight. The
// collector's mu must be held.
func (r *Resource) setLimits(limits []Limit) {
	rules, used := limits, len(limits) > 0
	if r.fallback.Load() {
		// The limiters in overflowLimiters have the rules of patterns, even for calls with the name of r.
		rules = filter(limits, func(l Limit) bool { return !l.isPattern() })
		all := r.c.limits.Load().list
		used = len(all) > 0
		limits = filter(all, func(l Limit) bool { return l.isPattern() || l.Resource == r.name })
	}
	r.blocks.prune()
	m := r.limiterState.Load()
	if m == nil {
		if !used {
			return
		}
		m = newLimiter(r.c, "", false)
		r.limiterState.Store(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.limiter.Store(m); !used {
		r.limiter.Store(nil)
	}
	m.setRules(rules, r)
	m.dryCounts = filter(m.dryCounts, func(x labelled[dryCount]) bool { return x.of.stat != nil })
	// Add each limit with the count 0, so that its series exists before the limit refuses a call.
	for _, l := range limits {
		if l.DryRun {
			getOrAdd(&m.dryCounts, l.String())
		} else {
			r.blocks.add(l.String(), 0)
		}
	}
	// SetCounters adds the calls of the leaf that are already in flight to the meters that the new rules read. From
	// then on, the leaf updates these meters.
	for l := range r.leaves {
		l.SetCounters(m.counters(l.origin)...)
	}
}

// share marks r as a resource that records calls of other names: see [FallbackResource]. A limit with a pattern then
// applies to each of these names separately.
func (c *Collector) share(r *Resource) {
	if r.fallback.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.fallback.Load() && !r.dead.Load() {
		r.fallback.Store(true)
		r.setLimits(c.limits.Load().forName(r.name))
	}
}
