package collector

import (
	"fmt"
	"strings"
)

// Grade is the quantity that a [Limit] limits: Sentinel's grade.
type Grade int

const (
	// QPS limits the passes in a second.
	QPS Grade = iota
	// Concurrency limits the calls in flight. A batch counts as one call.
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

// Limit is a rule that bounds the passes of a resource in a second, or its calls in flight. Sentinel calls it a
// FlowRule with the default controller. Unlike Sentinel, the Collector checks and counts a call in one step. No other
// call can pass between the check and the count.
//
// # QPS
//
// The Collector counts passes in buckets. By default, a second has two buckets; see [node.Options].SampleCount.
//
// A second that begins at a bucket's start never holds more passes than Count, under any number of goroutines. A second
// that begins inside a bucket can hold up to twice Count: Count passes near the beginning of the second, and Count
// passes near its end. An interval that is one bucket shorter than a second never holds more passes than Count,
// wherever it begins. The length of such an interval is half a second by default, and 0.9 s with 10 buckets. With
// Strict, no second holds more passes than Count, wherever the second begins. For the cost of Strict see [node.Quota].
//
// If a limit on QPS would refuse a prioritized call, the call borrows from the first later bucket that has enough
// quota. The call waits until this bucket begins, and then passes. If this bucket begins more than half a second from
// now, or if no bucket has enough quota, the call is blocked at once, without a wait. A borrowed pass is called an
// occupied pass. If the context of the call ends during the wait, the call is blocked.
//
// # Concurrency
//
// A limit on concurrency counts every call in flight. This includes calls that entered before the limit was set, and
// calls that wait for a bucket. The cost of the check does not depend on the number of origins.
//
// # Several limits
//
// A call passes only if all limits that match it admit it. Limits never refuse calls that enter through
// [Resource.Enter] or have the option [Admitted], but they count these calls. If a pattern matches many names, each of
// them has its own quota.
//
// # Overflowing names
//
// An overflowing name has no resource. Its calls are recorded for [Other] because the table is full, or for another
// resource because of [FallbackResource]. Limits with patterns count each overflowing name separately. This holds for
// at most Options.MaxResources names, and the counts take at most a sixteenth of Options.MaxMemory. If there are more
// overflowing names, a new name evicts all idle names: names without a call in flight and without a pass in the last
// four seconds. If no name is idle, new names share one quota for each pattern that they match. If an overflowing name
// gets a resource later, its recent passes still count.
//
// A name can have a resource although there is no memory for another leaf of this resource. (A leaf records the calls
// of one resource, origin and entrance.) Other then records a call that needs the leaf, but the limits of the call's
// own resource apply. These limits count the call together with the calls that the leaves of the resource record. If
// one of these limits refuses the call, the block is recorded for Other.
//
// # Dry runs
//
// A dry run is a limit that refuses no call. It counts the calls that it would refuse: see [Resource.DryRuns]. A dry
// run checks a call when the call passes, so it checks only calls that all limits admit. If a dry run would refuse the
// call, the call passes anyway. This call counts like any other pass, but not in the quotas of dry runs, because limits
// would have kept it out. The dry runs of a name therefore count exactly the calls that the same limits would refuse.
// One difference remains: the caller of a refused call may retry, but a dry run causes no retry.
//
// A new dry run counts the passes of the last second and the calls in flight, as a new limit does. No prioritized call
// waits for a dry run. If a dry run would let a prioritized call borrow from a later bucket, the dry run counts the
// pass in the later bucket. A dry run and a limit may have the same Resource, Origin and Grade. They do not affect each
// other. If a dry run would refuse a call, this call costs about as much as a pass and a refusal together.
//
// # Limitations
//
// Overflowing names are limited separately only if the calls enter by name, as with [Collector.Enter]. A handle that
// was obtained while the table was full is limited as Other.
//
// Some earlier calls do not count for new quotas:
//
//   - A new pattern does not count the earlier calls of overflowing names.
//   - A name that gets its own resource or quota may have calls in flight that count in a shared quota. These calls do
//     not count in the name's own quota.
//   - If there was no memory for a leaf, Other recorded the calls that needed this leaf. A new limit on the resource of
//     these calls does not count their earlier passes.
type Limit struct {
	// Resource is the name of a resource, or a pattern. Each * of a pattern matches any sequence of characters,
	// including the empty sequence and slashes. [CleanName] must return the name or pattern unchanged. If a limit has
	// a name instead of a pattern, a resource with this name always gets a slot in the table. A limit with exactly the
	// name [Other] applies to the sum of all calls that are recorded for Other.
	Resource string
	// Origin is the origin whose calls are limited. If it is empty, the limit covers all origins together: Sentinel's
	// limitApp default.
	Origin string
	// Grade is the limited quantity.
	Grade Grade
	// Count is the highest allowed value; 0 refuses every call.
	Count int64
	// Strict makes a limit on QPS hold for every second. Without it, the limit holds only for seconds that begin at a
	// bucket's start.
	Strict bool
	// DryRun makes the limit refuse no call, and count the calls that it would refuse: see [Resource.DryRuns].
	DryRun bool
}

// String returns the name of the limit, such as "qps GET /users/*". Calls that the limit refuses are counted as blocks
// with this name as their reason; see [Resource.Blocks]. The name does not depend on Count, Strict or DryRun.
func (l Limit) String() string {
	s := l.Grade.String() + " " + l.Resource
	if l.Origin != "" {
		s += " from " + l.Origin
	}
	return s
}

// isPattern reports whether l.Resource is a pattern.
func (l Limit) isPattern() bool { return strings.Contains(l.Resource, "*") }

// Matches reports whether the limit applies to calls of the resource with this name.
func (l Limit) Matches(resource string) bool { return match(l.Resource, resource) }

// match reports whether name matches pattern. Each * in pattern matches any sequence of characters. The cost is at most
// proportional to the length of pattern times the length of name.
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
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part) // the first occurrence leaves the longest rest of name for the later parts
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], next
	}
}
