package collector

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Grade is the quantity that a [Limit] limits: Sentinel's grade.
type Grade int

const (
	// QPS limits the passes of a second.
	QPS Grade = iota
	// Concurrency limits the calls in flight. A batch is one.
	Concurrency
)

func (g Grade) String() string {
	switch g {
	case QPS:
		return "qps"
	case Concurrency:
		return "concurrency"
	}
	return fmt.Sprintf("Grade(%d)", int(g))
}

// Limit is a rule: how many calls of a resource may pass in a second, or be in flight. Sentinel's FlowRule with its
// default controller, except that check and count are one step: under any number of goroutines no window of one second
// that begins when a bucket does ever holds more passes than Count.
//
// Buckets are those of the second window, two in a second by default. A second that begins anywhere can hold up to
// twice Count, if one half comes at its beginning and the other at its end: what is guaranteed is that any stretch of a
// second less one bucket, half a second by default and 0.9 s with 10 buckets, holds no more than Count. Strict makes it
// so for any second, for a price: see [node.Quota].
//
// All limits that match a call must let it through. Each name has its own quota, also where a pattern matches many.
// Calls that enter by [Resource.Enter] or are [Admitted] are not refused, but count. A limit on concurrency counts every call
// in flight, also those that entered before it was set, and those that wait; it costs the same with one origin and with
// thousands. A prioritized call that a limit on QPS refuses borrows from the next bucket with quota left, within half a
// second, and waits for it; it passes in that bucket, as an occupied pass, or is blocked if its context ends before that.
//
// Names that are counted for [Other], because there are too many, or as [CountedAs] says, are kept apart, too: at most
// Options.MaxResources of them.
// Beyond that, a new name evicts those without a call in flight or in the last four seconds. If all are busier, further names share one
// quota for each pattern that they match. A name that gets a resource later takes what it used along.
//
// A dry run is a limit that refuses nothing, and counts what it would refuse: see [Resource.DryRuns]. It decides about the calls that
// get past all limits, when they pass. A call that it would refuse passes all the same and counts everywhere but in the quotas of
// dry runs; so, if callers do not try again, the dry runs for a name together count what the same limits would refuse. They begin with
// what has passed and what is in flight, as limits do. A prioritized call for which a later bucket has quota left passes in that
// bucket for a dry run. A dry run and a limit may be for the same thing; neither changes what the other does. A call that a dry run
// would refuse costs about what one that passes and one that is refused cost together.
//
// Limitations. Only [Collector.Enter] knows the name of a call that is counted for Other; calls by handles that were made when the table
// was full are all of the name Other. What names that are counted for Other did before the first pattern was for them is
// not known. A name that had calls in flight in a shared quota, and gets a resource or a quota of its own, begins without them.
type Limit struct {
	// Resource is the name of the resource, or a pattern in which each * stands for any run of characters, none and /
	// included. All names are as [CleanName] makes them. A name that is limited exactly always has a resource. The name
	// [Other], without a *, limits all calls together that are counted for it.
	Resource string
	// Origin limits the calls of one origin; empty, those of all origins together (Sentinel's limitApp default).
	Origin string
	// Grade is the limited quantity.
	Grade Grade
	// Count is the most that is allowed; 0 refuses every call.
	Count int64
	// Strict makes a limit on QPS hold for every second, not only for those that begin when a bucket does.
	Strict bool
	// DryRun makes the limit refuse nothing, and count what it would refuse: see [Resource.DryRuns].
	DryRun bool
}

// String is the limit's name as the reason of a block, such as "qps GET /users/*". It does not change with the count, nor if the limit
// is a dry run.
func (l Limit) String() string {
	s := l.Grade.String() + " " + l.Resource
	if l.Origin != "" {
		s += " from " + l.Origin
	}
	return s
}

// pattern reports whether the limit is for all resources that match.
func (l Limit) pattern() bool { return strings.Contains(l.Resource, "*") }

// Matches reports whether the limit is for the resource with this name.
func (l Limit) Matches(resource string) bool { return match(l.Resource, resource) }

// match reports whether a name matches a pattern in which each * stands for any run of characters. It takes time in
// proportion to the product of their lengths at most.
func match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return len(name) >= len(part) && strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part) // the first match is the best: it leaves the most to the parts that follow
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], next
	}
}

// ErrBlocked is the error of a call that a limit refused; errors.As finds the [BlockedError] that names the limit.
var ErrBlocked = errors.New("collector: blocked")

// BlockedError is the reason why a call was refused. errors.Is(err, ErrBlocked) holds for it.
type BlockedError struct {
	// Limit is the rule that refused the call.
	Limit Limit
	// Resource and Origin are those of the call.
	Resource, Origin string
	// Reading is the value that the limit compared: the passes of the last second, or the calls in flight.
	Reading int64
	// Cancelled is the error that ended the wait of a prioritized call, usually its context's; nil if it did not wait.
	Cancelled error
}

func (e *BlockedError) Error() string {
	s := fmt.Sprintf("collector: blocked: %q", e.Resource)
	if e.Origin != "" {
		s += fmt.Sprintf(" from %q", e.Origin)
	}
	s += fmt.Sprintf(": limit %q of %d is used up: %d", e.Limit, e.Limit.Count, e.Reading)
	if e.Cancelled != nil {
		s += "; gave up waiting: " + e.Cancelled.Error()
	}
	return s
}

// Unwrap makes errors.Is find [ErrBlocked], and the context's error if the call was cancelled.
func (e *BlockedError) Unwrap() []error {
	if e.Cancelled != nil {
		return []error{ErrBlocked, e.Cancelled}
	}
	return []error{ErrBlocked}
}

// Cancelled is the reason of blocks of prioritized calls that stopped waiting.
const Cancelled = "cancelled"

// ruleSet is all limits. It is replaced, not changed.
type ruleSet struct {
	list     []Limit
	at       map[string][]int // where in the list a name or a pattern is limited
	patterns []string         // sorted, each once
	names    map[string]bool  // resources that are named exactly: they are always registered
	origins  map[string]bool  // and origins
}

func newRuleSet(list []Limit) *ruleSet {
	s := &ruleSet{list: list, at: map[string][]int{}, names: map[string]bool{}, origins: map[string]bool{}}
	for i, l := range list {
		switch {
		case !l.pattern():
			s.names[l.Resource] = true
		case len(s.at[l.Resource]) == 0:
			s.patterns = append(s.patterns, l.Resource)
		}
		s.at[l.Resource] = append(s.at[l.Resource], i)
		if l.Origin != "" {
			s.origins[l.Origin] = true
		}
	}
	slices.Sort(s.patterns)
	return s
}

// matching are the patterns that a name matches, sorted. It costs in proportion to all patterns.
func (s *ruleSet) matching(name string) (list []string) {
	for _, p := range s.patterns {
		if match(p, name) {
			list = append(list, p)
		}
	}
	return list
}

// forName are the limits that are for a name, in their order.
func (s *ruleSet) forName(name string) []Limit {
	subjects := s.matching(name)
	if s.names[name] {
		subjects = append(subjects, name)
	}
	return s.forAny(subjects)
}

// forAny are the limits of some names and patterns, in their order.
func (s *ruleSet) forAny(subjects []string) []Limit {
	var at []int
	for _, x := range subjects {
		at = append(at, s.at[x]...)
	}
	slices.Sort(at)
	list := make([]Limit, len(at))
	for i, j := range at {
		list[i] = s.list[j]
	}
	return list
}

// Limits returns the limits in force, and the dry runs.
func (c *Collector) Limits() []Limit {
	if c == nil {
		return nil
	}
	return slices.Clone(c.limits.Load().list)
}

// Limit is the lowest limit of a grade that is for all calls of the resource together, those of single origins and dry runs aside; ok
// is false if there is none. A pattern is for each name by itself, and so is no limit of [Other]. It takes the lock that limited calls take, for as long as it looks.
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

// SetLimits replaces all limits while calls go on. Each resource changes from the old limits to the new ones in one step, one
// resource after the other; when SetLimits returns, all have. The passes of the last second,
// and the calls in flight, count for the new limits. If any limit is wrong none is changed, and the error names all that is
// wrong. A call that was about to enter a resource without limits in this very moment is in flight for the new ones, but
// its pass may be uncounted.
//
// It costs in proportion to the resources times the patterns, and a new name in proportion to the patterns. Calls, and names
// that are new, wait for one resource at most.
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
	c.limits.Store(rules) // from here on names that are registered have the new ones
	c.names.refresh()
	c.mu.Unlock()
	for _, r := range c.all() {
		own := rules.forName(r.name)
		if len(own) == 0 && r.limiter.Load() == nil && !r.shared.Load() {
			continue // it had none, and gets none
		}
		c.mu.Lock()
		r.setLimits(own)
		c.mu.Unlock()
		c.mu.yield()
	}
	return nil
}

// Escapes reports whether there is a limit for calls of a name that is not for those of another one: whether they would escape it
// if they were counted under that. It costs in proportion to the limits.
func (c *Collector) Escapes(name, as string) bool {
	if c == nil {
		return false
	}
	name, as = CleanName(name), CleanName(as)
	return slices.ContainsFunc(c.limits.Load().list, func(l Limit) bool { return l.Matches(name) && !l.Matches(as) })
}

// CheckLimits returns an error that names everything that is wrong with the limits: empty names, counts below 0, two
// limits for the same thing.
func CheckLimits(limits []Limit) error {
	var errs []error
	seen := map[Limit]int{} // without what it allows
	for i, l := range limits {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("limit %d: "+format, append([]any{i + 1}, args...)...))
		}
		switch {
		case l.Resource == "":
			wrong("resource is empty; a name or a pattern such as * is needed")
		case l.Resource == Root || l.Resource == InboundTotal:
			wrong("%s is a view, and no resource has this name; * is for all, each by itself", l.Resource)
		case l.Resource != cleanName(l.Resource, ""):
			wrong("resource %.40q... is longer than %d bytes, or not UTF-8", l.Resource, MaxNameLength)
		}
		if l.Origin != cleanName(l.Origin, "") {
			wrong("origin %.40q... is longer than %d bytes, or not UTF-8", l.Origin, MaxNameLength)
		}
		if l.Grade != QPS && l.Grade != Concurrency {
			wrong("there is no %v", l.Grade)
		}
		if l.Count < 0 {
			wrong("%v is %d; 0 or more is needed", l.Grade, l.Count)
		}
		if l.Strict && l.Grade != QPS {
			wrong("strict is for qps; %v is exact anyway", l.Grade)
		}
		s := Limit{Resource: l.Resource, Origin: l.Origin, Grade: l.Grade, DryRun: l.DryRun}
		if before, ok := seen[s]; ok {
			wrong("%q is limited by limit %d already, to %d", l, before+1, limits[before].Count)
		} else {
			seen[s] = i
		}
	}
	return errors.Join(errs...)
}
