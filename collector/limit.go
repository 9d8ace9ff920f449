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
// FlowRule with the default controller. Unlike in Sentinel, check and count are one step.
//
// # QPS
//
// Under any number of goroutines, no window of one second that begins at a bucket's start holds more passes than
// Count. A second has two buckets by default, see [node.Options].SampleCount. A second that begins elsewhere holds up
// to twice Count, if one half arrives at its beginning and the other half at its end. A time that is one bucket
// shorter than a second never holds more than Count: half a second by default, 0.9 s with 10 buckets. With Strict, no
// second at all holds more than Count, at a price: see [node.Quota].
//
// A prioritized call that a limit on QPS refuses borrows from the next bucket with quota left, within half a second,
// and waits for the start of the bucket. There the call passes, as an occupied pass. If its context ends first, the
// call is blocked.
//
// # Concurrency
//
// A limit on concurrency counts every call in flight, including calls that entered before the limit was set and calls
// that wait for a bucket. Its cost does not depend on the number of origins.
//
// # Several limits
//
// A call passes only if all limits that match it admit it. Calls that enter through [Resource.Enter] or are
// [Admitted] are never refused, but count. Each name has its own quota, even if a pattern matches many names.
//
// # Overflowing names
//
// An overflowing name has no resource: its calls are recorded for [Other] because the table is full, or for another
// resource because of [FallbackResource]. Limits track up to Options.MaxResources overflowing names separately, or as
// many as fit into a sixteenth of Options.MaxMemory. A further name evicts the names without a call in flight and
// without a pass in the last four seconds. If all names are busy, further names share one quota for each pattern that
// they match. A name that gets a resource later keeps its used quota.
//
// If there is no memory for a leaf of a resource, its call is recorded for Other, too, but counts for the limits of its
// resource, together with the calls that the leaves of the resource record. If such a limit refuses the call, the block
// is recorded for Other.
//
// # Dry runs
//
// A dry run is a limit that refuses no call. It counts the calls over the limit instead: see [Resource.DryRuns]. It
// checks the calls that all limits admit, at the time when they pass. A call over the limit of a dry run passes, and
// counts everywhere except in the quotas of dry runs. If callers do not retry, the dry runs of a name therefore count
// exactly the calls that the same limits would refuse. Dry runs start with the earlier passes and the calls in
// flight, as limits do. If a later bucket has quota left for a prioritized call, the dry run counts the pass there. A
// dry run and a limit may have the same subject; neither affects the other. A call that a dry run would refuse costs
// about as much as a pass and a refusal together.
//
// # Limitations
//
// Only [Collector.Enter] receives the name of a call that is recorded for Other. A handle obtained while the table is
// full is limited as Other. If a pattern is set that matches an overflowing name, earlier calls of the name do not
// count. A name that had calls in flight in a shared quota, and then gets its own resource or quota, starts without
// those calls. A new limit starts without the passes that Other recorded for its resource because of missing memory.
type Limit struct {
	// Resource is the name of a resource, or a pattern. Each * of a pattern matches any sequence of characters,
	// including the empty sequence and slashes. All names are in the form of [CleanName]. A name that is limited
	// without a * always has its own resource. The name [Other], without a *, limits all calls together that are
	// recorded for it.
	Resource string
	// Origin limits the calls of one origin. If it is empty, the limit covers all origins together: Sentinel's
	// limitApp default.
	Origin string
	// Grade is the limited quantity.
	Grade Grade
	// Count is the highest allowed value; 0 refuses every call.
	Count int64
	// Strict makes a limit on QPS hold for every second, instead of only for seconds that begin at a bucket's start.
	Strict bool
	// DryRun makes the limit count calls over the limit instead of refusing them: see [Resource.DryRuns].
	DryRun bool
}

// String returns the name of the limit, such as "qps GET /users/*". The name is also the reason of the calls that the
// limit blocks. It does not depend on Count, Strict or DryRun.
func (l Limit) String() string {
	s := l.Grade.String() + " " + l.Resource
	if l.Origin != "" {
		s += " from " + l.Origin
	}
	return s
}

// isPattern reports whether the limit applies to all matching resources.
func (l Limit) isPattern() bool { return strings.Contains(l.Resource, "*") }

// Matches reports whether the limit applies to the resource with this name.
func (l Limit) Matches(resource string) bool { return match(l.Resource, resource) }

// match reports whether name matches a pattern. Each * matches any sequence of characters. The cost is at most
// proportional to the product of their lengths.
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
		i := strings.Index(name, part) // the first occurrence leaves the most for the parts that follow
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], next
	}
}
