package collector

import "time"

// CallOption changes how a call is counted, see [Collector.Enter].
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
	optionEarned
	optionCountedAs
	optionTraceID
)

// Origin names the caller: Sentinel's origin. Entries below this one have the same origin, unless they name another or are
// [Outbound].
func Origin(name string) CallOption { return CallOption{kind: optionOrigin, text: name} }

// Entrance names the context of the call, where its chain enters: Sentinel's context name. It counts for the first
// entry of a chain; those below it are in the same context. Without it that is [DefaultEntrance].
func Entrance(name string) CallOption { return CallOption{kind: optionEntrance, text: name} }

// Inbound marks a call that comes into the process from outside: it is part of [InboundTotal]. Below a call that is inbound it changes
// nothing, so that a request which passes two middlewares counts once; below an [Outbound] one it has come in again.
func Inbound() CallOption { return CallOption{kind: optionInbound} }

// Outbound marks a call that leaves the process. It does not inherit the origin of the entry above.
func Outbound() CallOption { return CallOption{kind: optionOutbound} }

// Batch makes the entry stand for n calls: they pass, or are refused, together, take the same time, and are one in flight.
// Below 1 it is 1; above 2^32-1 a call that enters is that.
func Batch(n int64) CallOption { return CallOption{kind: optionBatch, n: n} }

// Prioritized lets a call that a limit on QPS refuses wait for the next bucket: at most half a second, and not longer than
// its context. See [Limit].
func Prioritized() CallOption { return CallOption{kind: optionPrioritized} }

// Admitted marks a call that was already let through. No limit refuses it, but it counts for all of them.
func Admitted() CallOption { return CallOption{kind: optionAdmitted} }

// StartedAt is when the call began, for one that is entered late. Its response time counts from then; it passes, and is in
// flight, from now on, because sealed seconds do not change. A time to come, and the zero time, are the present.
func StartedAt(t time.Time) CallOption { return CallOption{kind: optionStarted, at: &t} }

// Passed marks a call whose pass another process has counted: here it is in flight and completes, and does not pass. No
// limit refuses it. None on QPS counts it, which counts passes; one on concurrency does, because it is in flight.
func Passed() CallOption { return CallOption{kind: optionPassed} }

// Earned marks a name that comes from a request, such as a path, and has earned a resource of its own. It evicts no given name, and any
// name may evict it, see [Options].MaxResources. A name is given once a call without this option, or [Collector.Resource], has used it.
func Earned() CallOption { return CallOption{kind: optionEarned} }

// CountedAs counts a call whose name has not earned a resource of its own for another one, such as one for all such
// names: unless there is a resource of its own name, or a limit names it exactly. Limits apply by its own name as they do
// for names that are counted for [Other], see [Limit]. The other resource is made if need be, and is never retired. Calls of
// its own that are in flight when it first counts another name are not known to limits with patterns.
func CountedAs(resource string) CallOption { return CallOption{kind: optionCountedAs, text: resource} }

// TraceID is the id of the trace that the call, and those below it, are part of, for [Collector.Oldest]. One that is longer than 64
// bytes is left out. It costs an allocation. For exemplars see [Entry.ExitTrace].
func TraceID(id string) CallOption { return CallOption{kind: optionTraceID, text: id} }

// options are all options of a call.
type options struct {
	origin, entrance string
	hasOrigin        bool
	inbound          bool
	outbound         bool
	prioritized      bool
	admitted         bool
	passed           bool
	earned           bool
	nested           bool // below another call whose entry is not known
	trace            string
	countedAs        string // empty for a call that its own name counts
	name             string // that was asked for
	n                int64
	at               *time.Time // nil is now
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
		case optionEarned:
			o.earned = true
		case optionCountedAs:
			o.earned, o.countedAs = true, x.text
		case optionTraceID:
			o.trace = x.text
		case optionStarted:
			o.at = x.at
		}
	}
}
