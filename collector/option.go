package collector

import "time"

// CallOption changes how a call is recorded; see [Collector.Enter].
type CallOption struct {
	kind optionKind
	text string
	n    int64
	at   *time.Time
}

type optionKind uint8

const (
	optionOrigin optionKind = iota + 1
	optionEntrance
	optionInbound
	optionOutbound
	optionBatch
	optionPrioritized
	optionAdmitted
	optionStarted
	optionPassed
	optionFromRequest
	optionFallback
	optionTraceID
)

// Origin names the caller of the service: Sentinel's origin. Nested calls inherit the origin, unless they set another
// one or are [Outbound].
func Origin(name string) CallOption { return CallOption{kind: optionOrigin, text: name} }

// Entrance names the point where a chain of calls enters the process: Sentinel's context name. It applies to the
// outermost call; all nested calls have the same entrance. The default is [DefaultEntrance].
func Entrance(name string) CallOption { return CallOption{kind: optionEntrance, text: name} }

// Inbound marks a call from outside the process. Such a call counts in [InboundTotal]. Inbound has no effect on a call
// that is nested below an inbound call: a request that passes two middlewares counts once. Below an [Outbound] call,
// Inbound has an effect again, because the outbound call may send another request to the same process.
func Inbound() CallOption { return CallOption{kind: optionInbound} }

// Outbound marks a call that leaves the process. The call does not inherit the origin of its caller.
func Outbound() CallOption { return CallOption{kind: optionOutbound} }

// Batch makes the entry represent n calls. They pass or are refused together, have the same response time, and count as
// one call in flight. If n is below 1, it counts as 1. A batch that enters counts at most 2^32-1 passes. This maximum
// does not apply to batches that are refused, or that [Collector.Record] records.
func Batch(n int64) CallOption { return CallOption{kind: optionBatch, n: n} }

// Prioritized lets a call wait if a QPS limit would refuse it now. The call then borrows a pass from a later bucket (a
// part of a second, see [Limit]). It waits at most half a second, and stops waiting when its context ends.
func Prioritized() CallOption { return CallOption{kind: optionPrioritized} }

// Admitted marks a call that was already admitted elsewhere. No limit refuses the call, but all limits count it.
func Admitted() CallOption { return CallOption{kind: optionAdmitted} }

// StartedAt is for a call that began at the time t, before it enters. The response time of the call is measured from t.
// The pass is counted when the call enters, because sealed seconds do not change. For the same reason, the call is in
// flight only from its entry on. If t is zero or in the future, the response time is measured from the entry.
func StartedAt(t time.Time) CallOption { return CallOption{kind: optionStarted, at: &t} }

// Passed marks a call whose pass another process has counted, for example the process before a restart. In this process
// the call is in flight and completes, but does not pass. No limit refuses it. Limits on QPS do not count it, because
// they count passes. Limits on concurrency count it, because it is in flight.
func Passed() CallOption { return CallOption{kind: optionPassed} }

// FromRequest marks a name that comes from a request, such as a path. The caller has decided that the name may have a
// resource, for example because the service has responded to this name with success. Such a name is earned; other names
// are given. In a full table, an earned name never evicts a given name, but any new name may evict an earned one; see
// [Options].MaxResources. An earned name becomes given when a call without this option, or [Collector.Resource], uses
// it.
func FromRequest() CallOption { return CallOption{kind: optionFromRequest} }

// FallbackResource records the call for a fallback resource instead of a resource with the call's own name. For
// example, all calls with names that have not earned a resource can share the resource "unmatched". If the call's own
// name has a resource, or if a limit without a * has this name, the call is recorded for its own name; the option then
// has the same effect as [FromRequest]. Otherwise, the limits for the call's own name still apply to the call, as they
// do to a call that is recorded for [Other]; see [Limit]. The fallback resource is registered if necessary, and is
// never retired.
//
// When the fallback resource records a call of another name for the first time, calls with the name of the fallback
// resource itself may be in flight. Limits with patterns do not count these earlier calls.
func FallbackResource(resource string) CallOption {
	return CallOption{kind: optionFallback, text: resource}
}

// TraceID sets the trace ID of the call and of the calls nested below it, for [Collector.Oldest]. TraceID ignores an ID
// that is empty, longer than 64 bytes, or not valid UTF-8. The option costs an allocation. To keep the ID with the
// response time of the call, use [Entry.ExitTrace].
func TraceID(id string) CallOption { return CallOption{kind: optionTraceID, text: id} }

// options holds all options of a call.
type options struct {
	origin, entrance string
	hasOrigin        bool
	inbound          bool
	outbound         bool
	prioritized      bool
	admitted         bool
	passed           bool
	fromRequest      bool
	nested           bool // from Completed.Nested: the call has a caller, but no context with this caller
	trace            string
	fallback         string // from FallbackResource; empty without the option
	name             string // the call's own name, as passed to Enter
	// home is the resource with the name of the call, if [Other] records the call because there is no memory for
	// another leaf of that resource. Otherwise home is nil. (A leaf is a combination of resource, origin and entrance.)
	home *Resource
	n    int64
	at   *time.Time // from StartedAt; nil without the option
}

func (o *options) apply(list []CallOption) {
	o.n = 1
	for i := range list {
		switch x := &list[i]; x.kind {
		case optionOrigin:
			o.origin, o.hasOrigin = x.text, true
		case optionEntrance:
			o.entrance = x.text
		case optionInbound:
			o.inbound, o.outbound = true, false
		case optionOutbound:
			o.inbound, o.outbound = false, true
		case optionBatch:
			o.n = max(x.n, 1)
		case optionPrioritized:
			o.prioritized = true
		case optionAdmitted:
			o.admitted = true
		case optionPassed:
			o.passed = true
		case optionFromRequest:
			o.fromRequest = true
		case optionFallback:
			o.fromRequest, o.fallback = true, x.text
		case optionTraceID:
			o.trace = x.text
		case optionStarted:
			o.at = x.at
		}
	}
}
