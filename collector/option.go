package collector

import "time"

// Option changes how a call is counted, see [Collector.Enter].
type Option struct {
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
)

// Origin names the caller: Sentinel's origin. Entries below this one have the same origin, unless they name another or are
// [Outbound].
func Origin(name string) Option { return Option{kind: optionOrigin, text: name} }

// Entrance names the context of the call, where its chain enters: Sentinel's context name. It counts for the first
// entry of a chain; those below it are in the same context. Without it that is [DefaultEntrance].
func Entrance(name string) Option { return Option{kind: optionEntrance, text: name} }

// Inbound marks a call that comes into the process from outside: it is part of [InboundTotal].
func Inbound() Option { return Option{kind: optionInbound} }

// Outbound marks a call that leaves the process. It does not inherit the origin of the entry above.
func Outbound() Option { return Option{kind: optionOutbound} }

// Batch makes the entry stand for n calls: they pass, or are refused, together, take the same time, and are one in flight.
// Below 1 it is 1; above 2^32-1 a call that enters is that.
func Batch(n int64) Option { return Option{kind: optionBatch, n: n} }

// Prioritized lets a call that a limit on QPS refuses wait for the next bucket: at most half a second, and not longer than
// its context. See [Limit].
func Prioritized() Option { return Option{kind: optionPrioritized} }

// Admitted marks a call that was already let through. No limit refuses it, but it counts for all of them.
func Admitted() Option { return Option{kind: optionAdmitted} }

// StartedAt is when the call began, for one that is entered late. Its response time counts from then; it passes, and is in
// flight, from now on, because sealed seconds do not change. A time to come, and the zero time, are the present.
func StartedAt(t time.Time) Option { return Option{kind: optionStarted, at: &t} }

// Passed marks a call whose pass another process has counted: here it is in flight and completes, and does not pass. No
// limit refuses it. None on QPS counts it, which counts passes; one on concurrency does, because it is in flight.
func Passed() Option { return Option{kind: optionPassed} }

// Earned marks a name that strangers made, such as one of a path, and that has earned a resource of its own: it pushes out
// no name that is given, and may be pushed out by any, see [Options].MaxResources. A name is given once a call without this
// option, or [Collector.Resource], has asked for it.
func Earned() Option { return Option{kind: optionEarned} }

// CountedAs counts a call whose name has not earned a resource of its own for another one, such as one for all such
// names: unless there is a resource of its own name, or a limit names it exactly. Limits apply by its own name as they do
// for names that are counted for [Other], see [Limit]. The other resource is made if need be, and is never retired. Calls of
// its own that are in flight when it first counts another name are not known to limits with patterns.
func CountedAs(resource string) Option { return Option{kind: optionCountedAs, text: resource} }

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
	nested           bool   // below another call, of which no entry is known
	countedAs        string // empty for a call that its own name counts
	name             string // that was asked for
	n                int64
	at               *time.Time // nil is now
}

func (o *options) apply(list []Option) {
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
		case optionStarted:
			o.at = x.at
		}
	}
}
