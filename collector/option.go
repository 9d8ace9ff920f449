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

// Origin names the caller: Sentinel's origin. Calls below this one inherit it, unless they set another or are
// [Outbound].
func Origin(name string) CallOption { return CallOption{kind: optionOrigin, text: name} }

// Entrance names the context of the call, the point where its chain of calls enters: Sentinel's context name. It
// applies to the first call of a chain; calls below it are in the same context. The default is [DefaultEntrance].
func Entrance(name string) CallOption { return CallOption{kind: optionEntrance, text: name} }

// Inbound marks a call from outside the process, which is part of [InboundTotal]. Below an inbound call it has no
// effect, so a request that passes two middlewares counts once. Below an [Outbound] call it has an effect again.
func Inbound() CallOption { return CallOption{kind: optionInbound} }

// Outbound marks a call that leaves the process. It does not inherit the origin of the call above.
func Outbound() CallOption { return CallOption{kind: optionOutbound} }

// Batch makes the entry represent n calls. They pass or are refused together, take the same time, and count as one call
// in flight. An n below 1 counts as 1. A batch that enters counts at most 2^32-1 passes. A refused batch, and a batch
// that [Collector.Record] records, count all their calls.
func Batch(n int64) CallOption { return CallOption{kind: optionBatch, n: n} }

// Prioritized lets a call wait for a later bucket if a QPS limit would refuse it now. The call waits at most half a
// second, and no longer than its context. See [Limit].
func Prioritized() CallOption { return CallOption{kind: optionPrioritized} }

// Admitted marks a call that was already admitted elsewhere. No limit refuses it, but it counts in all of them.
func Admitted() CallOption { return CallOption{kind: optionAdmitted} }

// StartedAt sets the start of a call that began before it is entered. The response time counts from t. The call passes
// when it is entered, and is in flight from then on, because sealed seconds do not change. If t is in the future or
// zero, the response time counts from the entry, too.
func StartedAt(t time.Time) CallOption { return CallOption{kind: optionStarted, at: &t} }

// Passed marks a call whose pass another process has counted: here it is in flight and completes, but does not pass. No
// limit refuses it. Limits on QPS do not count it, because they count passes; limits on concurrency do, because it is
// in flight.
func Passed() CallOption { return CallOption{kind: optionPassed} }

// FromRequest marks a name that comes from a request, such as a path, and has earned a resource. Such a name evicts no
// given name, and any new name may evict it; see [Options].MaxResources. A name becomes given when a call without this
// option, or [Collector.Resource], uses it.
func FromRequest() CallOption { return CallOption{kind: optionFromRequest} }

// FallbackResource records a call for another resource, such as one for all names that have not earned a resource. It
// has no effect if the call's own name has a resource, or if a limit names it exactly. Limits apply by the call's own
// name, as for names that are recorded as [Other]; see [Limit]. The other resource is registered if necessary, and is
// never retired.
//
// When the other resource first records another name, it may have calls of its own in flight. Limits with patterns do
// not count these calls.
func FallbackResource(resource string) CallOption {
	return CallOption{kind: optionFallback, text: resource}
}

// TraceID sets the trace ID of the call and the calls below it, for [Collector.Oldest]. An ID longer than 64 bytes is
// ignored. It costs an allocation. For exemplars see [Entry.ExitTrace].
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
	nested           bool // the call is below another call, which has no frame
	trace            string
	fallback         string // empty if the call's own name records it
	name             string // the name in the call
	// The resource of the name, if Other records the call because there is no memory for a leaf.
	home *Resource
	n    int64
	at   *time.Time // nil means now
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
