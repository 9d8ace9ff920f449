package collector

import (
	"maps"
	"sync"
)

// overflowLimiters holds the limiters (the states of limits) of overflowing names. Such a name has no resource and
// matches a pattern of a limit. Another resource records its calls: [Other], or the resource of [FallbackResource]. At
// most Options.MaxResources names have their own limiter. All these limiters together take at most a sixteenth of
// Options.MaxMemory.
//
//	byName["GET /b"]    ── limiter of one name
//	byPattern["GET /*"] ── limiter that new names share while byName is full
//
// If byName is full, a new name evicts the idle names. SetLimits evicts them, too. An idle name has no call in flight,
// and its last pass is too old to count for any quota. If no name is idle, new names share one limiter for each pattern
// that they match. A name that has used a shared limiter may later get its own limiter. This limiter then starts with
// all recent passes of the shared limiter, because some of them may be passes of the name.
//
// The life of a limiter:
//
//	reserve ─┬─ byName full, no idle name ──→ byPattern, until the pattern has no limit and no call in flight
//	         └─ byName ─┬─ all its calls were refused (dropUnused) ──→ dropped
//	                    ├─ idle when a sweep runs (sweep) ───────────→ dropped
//	                    └─ the name gets a resource (remove) ────────→ Resource.limiter
//
// A limiter may be dropped after a call has found it and before the call locks it. The call then reads limiter.dropped,
// and looks up its name again.
//
// See limiter.go for the lock order.
type overflowLimiters struct {
	c *Collector

	mu        sync.Mutex
	byName    map[string]*limiter
	byPattern map[string]*limiter
	swept     int64 // index of the second of the last sweep
}

// idleAfter is the number of seconds without a pass after which a name is idle, including the open second. (A name with
// a call in flight is never idle.) No quota counts older passes: a strict quota with one bucket looks back two seconds,
// and a pass may be borrowed from a bucket up to half a second ahead.
const idleAfter = 5

func newOverflowLimiters(c *Collector) *overflowLimiters {
	return &overflowLimiters{c: c, byName: map[string]*limiter{}, byPattern: map[string]*limiter{}}
}

// second returns the index of the latest second that the timeline has opened. It does not read the clock.
func (c *Collector) second() int64 { return c.line.At(0).Index }

// reserve returns a new reservation (the list of limiters) for a call with this name. l is the leaf that records the
// call, and own is the limiter of l's resource. The reservation is nil if no pattern matches the name. If the name has
// got its own resource, reserve returns errMoved.
func (t *overflowLimiters) reserve(name string, l *leaf, own *limiter) (*reservation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.byName[name]
	var patterns []string
	if m == nil {
		if r, ok := t.c.byName.Load(name); ok && r != l.resource {
			return nil, errMoved
		}
		// The patterns are sorted, which is also the lock order of their limiters.
		if patterns = t.c.limits.Load().matching(name); len(patterns) == 0 {
			return nil, nil
		}
		m = t.add(name, patterns)
	}
	r := newReservation(l, own)
	if m != nil {
		r.list = append(r.list, m)
		return r, nil
	}
	for _, pattern := range patterns {
		if t.byPattern[pattern] == nil {
			t.byPattern[pattern] = newLimiter(t.c, pattern, true)
		}
		r.list = append(r.list, t.byPattern[pattern])
	}
	return r, nil
}

// add adds a limiter for a name to byName and returns it. patterns are the patterns that match the name. The limiter
// starts with the passes of a shared limiter, if one of these patterns has a shared limiter. If byName is full and no
// name is idle, add returns nil. mu must be held.
func (t *overflowLimiters) add(name string, patterns []string) *limiter {
	if len(t.byName) >= t.c.sizes.limiters {
		if t.sweep(); len(t.byName) >= t.c.sizes.limiters {
			return nil
		}
	}
	m := newLimiter(t.c, name, false)
	for _, pattern := range patterns {
		if shared := t.byPattern[pattern]; shared != nil {
			shared.mu.Lock()
			m.copyPasses(t.c, &shared.quotas)
			m.dry.copyPasses(t.c, &shared.dry)
			shared.mu.Unlock()
			// One shared limiter is enough: each call was counted in the limiters of all patterns that match its name.
			break
		}
	}
	t.byName[name] = m
	return m
}

// sweep drops the limiters of idle names from byName, at most once a second. mu must be held.
func (t *overflowLimiters) sweep() {
	now := t.c.second()
	if t.swept == now {
		return
	}
	t.swept = now // in a flood of new names, only the first name in each second scans byName
	maps.DeleteFunc(t.byName, func(_ string, m *limiter) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dropped = now-m.lastPass >= idleAfter && m.all.inFlight.Load() == 0
		return m.dropped
	})
}

// dropUnused drops the limiter m from byName if m has counted no pass. Another name can then use the slot.
func (t *overflowLimiters) dropUnused(m *limiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.byName[m.name] == m && m.lastPass == 0 {
		m.dropped = true
		delete(t.byName, m.name)
	}
}

// refresh drops a shared limiter if its pattern no longer has a limit and the limiter has no call in flight. It also
// drops the limiters of idle names. All other limiters refresh their rules when a call locks them. SetLimits calls
// refresh after it has changed Collector.limits.
func (t *overflowLimiters) refresh() {
	rules := t.c.limits.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byPattern, func(pattern string, m *limiter) bool {
		return m.all.inFlight.Load() == 0 && len(rules.bySubject[pattern]) == 0
	})
	t.sweep()
}

// remove is called when a name gets a resource. It removes the limiter of the name from byName and returns this
// limiter. The resource then uses this limiter. If byName has no limiter for the name, remove returns nil. The caller
// must hold mu until other goroutines can find the resource.
func (t *overflowLimiters) remove(name string) *limiter {
	m := t.byName[name]
	if m != nil {
		delete(t.byName, name)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.name = "" // lockAll no longer refreshes the rules; Resource.setLimits sets them
		// The views of the resource start empty, so keep a copy of the earlier passes. passesSoFar adds the copy to the
		// passes in the views.
		m.all.overflowPasses = t.c.copyQuota(m.all.passes)
		for _, x := range m.origins {
			if x.passes != nil {
				x.overflowPasses = t.c.copyQuota(x.passes)
			}
		}
	}
	return m
}
