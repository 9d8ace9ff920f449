package collector

import (
	"errors"
	"fmt"
	"slices"
)

// ruleSet holds all limits of a Collector. A ruleSet is immutable; SetLimits stores a new one.
type ruleSet struct {
	list      []Limit
	bySubject map[string][]int // by Limit.Resource; the values are indexes in list
	patterns  []string         // sorted, without duplicates
	// Names of resources in limits without a *; these names get a resource even if the table is full.
	names map[string]bool
	// Origins in limits; calls of these origins are counted separately even if there are too many origins.
	origins map[string]bool
}

func newRuleSet(list []Limit) *ruleSet {
	s := &ruleSet{list: list, bySubject: map[string][]int{}, names: map[string]bool{}, origins: map[string]bool{}}
	for i, l := range list {
		switch {
		case !l.isPattern():
			s.names[l.Resource] = true
		case len(s.bySubject[l.Resource]) == 0:
			s.patterns = append(s.patterns, l.Resource)
		}
		s.bySubject[l.Resource] = append(s.bySubject[l.Resource], i)
		if l.Origin != "" {
			s.origins[l.Origin] = true
		}
	}
	slices.Sort(s.patterns)
	return s
}

// matching returns the patterns that match the name of a resource, in sorted order. The cost is linear in the number of
// patterns in the set.
func (s *ruleSet) matching(name string) (patterns []string) {
	for _, p := range s.patterns {
		if match(p, name) {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// forName returns the limits that apply to a resource name, in the order of s.list.
func (s *ruleSet) forName(name string) []Limit {
	subjects := s.matching(name)
	if s.names[name] {
		subjects = append(subjects, name)
	}
	return s.forSubjects(subjects)
}

// forSubjects returns the limits that have one of the subjects as their Resource, in the order of s.list.
func (s *ruleSet) forSubjects(subjects []string) []Limit {
	var indexes []int
	for _, x := range subjects {
		indexes = append(indexes, s.bySubject[x]...)
	}
	slices.Sort(indexes)
	list := make([]Limit, len(indexes))
	for i, index := range indexes {
		list[i] = s.list[index]
	}
	return list
}

// Limits returns the limits in force, including dry runs.
func (c *Collector) Limits() []Limit {
	if c == nil {
		return nil
	}
	return slices.Clone(c.limits.Load().list)
}

// SetLimits changes the limits in three steps:
//
//	Collector.limits           SetLimits stores the new limits; new resources use them
//	overflowLimiters.refresh   drops the shared limiters of removed patterns; lockAll refreshes all others later
//	Resource.setLimits         called for each resource; Collector.mu is released after each call

// SetLimits replaces all limits while calls continue. The new limits of a resource replace its old ones in one step.
// SetLimits changes one resource after the other, and returns when all have changed. The passes of the last second and
// the calls in flight count for the new limits. There is one exception: if a call of a resource without limits enters
// during SetLimits, the new limits count the call as in flight, but may miss its pass.
//
// If any limit is invalid, SetLimits changes nothing and returns an error that names every invalid limit.
//
// The cost is proportional to the number of resources times the number of patterns. A call, or the registration of a
// new name, waits at most until SetLimits has changed one resource. Once limits are set, the registration of a name
// costs time proportional to the number of patterns.
func (c *Collector) SetLimits(limits []Limit) error {
	if c == nil {
		return nil
	}
	if err := CheckLimits(limits); err != nil {
		return err
	}
	rules := newRuleSet(slices.Clone(limits))
	c.limitsMu.Lock()
	defer c.limitsMu.Unlock()
	c.mu.Lock()
	c.limits.Store(rules) // resources that are registered from here on get the new limits
	c.overflowLimiters.refresh()
	c.mu.Unlock()
	for _, r := range c.all() {
		own := rules.forName(r.name)
		if len(own) == 0 && r.limiter.Load() == nil && !r.fallback.Load() {
			continue // the resource had no limit and gets none
		}
		// c.limits is still the value from which own was computed, because this call of SetLimits holds limitsMu.
		c.mu.Lock()
		r.setLimits(own)
		c.mu.Unlock()
		c.mu.yield()
	}
	return nil
}

// Escapes reports whether a limit matches name but not alias. A call with this name that is recorded as alias would
// escape the limit. The cost is linear in the number of limits.
func (c *Collector) Escapes(name, alias string) bool {
	if c == nil {
		return false
	}
	name, alias = CleanName(name), CleanName(alias)
	return slices.ContainsFunc(c.limits.Load().list, func(l Limit) bool { return l.Matches(name) && !l.Matches(alias) })
}

// CheckLimits returns an error that names every invalid limit. For example, a limit is invalid if its Resource is
// empty, if its Count is negative, or if an earlier limit has the same Resource, Origin, Grade and DryRun.
func CheckLimits(limits []Limit) error {
	var errs []error
	seen := map[Limit]int{} // index in limits; the keys have no Count and no Strict
	for i, l := range limits {
		invalid := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("limit %d: "+format, append([]any{i + 1}, args...)...))
		}
		switch {
		case l.Resource == "":
			invalid("resource is empty; a name or a pattern such as * is required")
		case l.Resource == Root || l.Resource == InboundTotal:
			invalid("%s is the reserved name of a view, not a resource; use * to limit each resource", l.Resource)
		case l.Resource != cleanName(l.Resource, ""):
			invalid("resource %.40q... is longer than %d bytes, or not UTF-8", l.Resource, MaxNameLength)
		}
		if l.Origin != cleanName(l.Origin, "") {
			invalid("origin %.40q... is longer than %d bytes, or not UTF-8", l.Origin, MaxNameLength)
		}
		if l.Grade != QPS && l.Grade != Concurrency {
			invalid("unknown grade %v", l.Grade)
		}
		if l.Count < 0 {
			invalid("%v is %d; it must not be negative", l.Grade, l.Count)
		}
		if l.Strict && l.Grade != QPS {
			invalid("strict applies to qps only; %v is always exact", l.Grade)
		}
		subject := Limit{Resource: l.Resource, Origin: l.Origin, Grade: l.Grade, DryRun: l.DryRun}
		if first, ok := seen[subject]; ok {
			invalid("%q is already limited to %d by limit %d", l, limits[first].Count, first+1)
		} else {
			seen[subject] = i
		}
	}
	return errors.Join(errs...)
}
