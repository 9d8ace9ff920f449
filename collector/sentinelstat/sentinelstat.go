// Package sentinelstat counts the calls of a service that uses sentinel-golang: a statistics slot on package collector.
//
//	import sentinel "github.com/alibaba/sentinel-golang/api"
//
//	c, err := collector.New(collector.Options{})
//	…
//	sentinel.GlobalSlotChain().AddStatSlot(sentinelstat.NewSlot(c)) // once, before the first entry
//
// From then on everything that goes through sentinel.Entry is counted, by whatever adapter. For the calls of a chain of
// one's own alone:
//
//	chain := sentinel.BuildDefaultSlotChain()
//	chain.AddStatSlot(sentinelstat.NewSlot(c))
//	…
//	e, blocked := sentinel.Entry("checkout", sentinel.WithSlotChain(chain))
//
// Sentinel's own statistics stay, because its rules decide by them: this slot is one more. It decides nothing. Sentinel
// has admitted a call when it hears of it, so limits of the Collector do not refuse it, but it uses them up.
//
// # What is counted
//
// A call passes, and is in flight, when Sentinel admits it, and completes at its first Exit. Its response time counts
// from the beginning of sentinel.Entry, so what a throttling rule made it wait is a part of it. It is an exception if
// its entry has an error by then, from sentinel.TraceError for one, that is an exception by the Collector's Options. A
// call that a rule refused is a block, whose reason is the kind of the rule, in Sentinel's words, and which one it is:
// its ID, or what it is for where that is not the resource. "FlowControl", "Isolation two at a time", "System
// inboundQPS". A batch of n is n passes, or n blocks, and n completions, but one in flight; a batch of 0 is one call. A
// completion has no code, as Sentinel knows none.
//
// Each call counts once, and concurrency is never negative, also where other slots panic. Sentinel logs such a panic
// and lets the call go on, with the panic as its error. If a slot panicked before this one heard of the call, the call
// passes when it completes, as an exception. Once a call is counted as a pass or a block it stays one; this is the first
// of the statistics slots, so that it hears of calls before those can panic. What panics in the functions of the
// Collector's Options ends here, in Sentinel's log: Sentinel's own statistics come after this slot.
//
// # Caveats
//
// This is a module of its own, so that importing package collector alone does not bring Sentinel. It is made for
// sentinel-golang v1.0.4.
//
// A call costs what Sentinel costs, some 1.5 to 2 µs, and about 0.5 µs and two allocations of 64 bytes together more; one that
// is blocked costs one allocation of 24 bytes more.
//
// Sentinel's entries know no context.Context, no origin and no entrance. So there is no call tree, and an entry within
// another is one more call that enters the process, by [collector.DefaultEntrance]: the views of the process and of that
// entrance count entries, not requests.
//
// Sentinel's clock has milliseconds: a wait of up to 2 ms before a call is admitted may not be seen, and a longer one
// may be off by 1 ms. Apart from that response times are exact. The wait is measured with the machine's clock even where
// the Collector has another, by its [collector.Options].
//
// Sentinel uses its contexts again: an error that is set on an entry after its Exit, by sentinel.TraceError or by a
// second Exit, may hit another call. The slot removes it where it was there before that call began.
//
// An entry that is never exited stays in flight for ever. So does one with an exit handler (WhenExit) that panics, or
// with a slot of order 0 that was added before this one and panics at the end: Sentinel does not tell of the end then.
package sentinelstat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/core/system"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/alibaba/sentinel-golang/util"

	"github.com/windowstat/windowstat/collector"
)

// Slot tells a Collector of the calls that go through a slot chain of Sentinel. Add it to a chain with
// base.SlotChain.AddStatSlot, once, and before calls use the chain: Sentinel does not guard that. A chain can have slots
// for several Collectors, and chains can share a slot.
//
// Its methods are Sentinel's to call. They are safe for concurrent use; those of one call follow each other. What a
// slot knows of a call in flight is in the call's context, which Sentinel empties at its Exit.
type Slot struct{ c *collector.Collector }

var _ base.StatSlot = (*Slot)(nil)

// NewSlot returns a slot that records into c. With a nil Collector it records nothing.
func NewSlot(c *collector.Collector) *Slot { return &Slot{c} }

// Order makes this the first of the statistics slots. A slot that panics keeps those after it from hearing of a call.
func (s *Slot) Order() uint32 { return 0 }

// OnEntryPassed records that a call passed and is in flight.
func (s *Slot) OnEntryPassed(ctx *base.EntryContext) {
	if ctx.Err() != nil {
		ctx.SetError(nil) // of the call that had this context before, and was traced after its Exit
	}
	if ctx.Data == nil { // Sentinel makes one, but not every context is its own
		ctx.Data = map[any]any{}
	}
	ctx.Data[s] = s.enter(ctx)
}

// OnEntryBlocked records that a rule refused a call.
func (s *Slot) OnEntryBlocked(ctx *base.EntryContext, err *base.BlockError) {
	name := ctx.Resource.Name()
	s.c.Block(context.Background(), name, reason(name, err), batch(ctx), traffic(ctx))
}

// OnCompleted records that a call that was not refused ended.
func (s *Slot) OnCompleted(ctx *base.EntryContext) {
	entry, ok := ctx.Data[s].(*collector.Entry)
	if !ok { // a slot panicked before this one heard of the call
		entry = s.enter(ctx)
	}
	delete(ctx.Data, s) // an empty map is used again with its context
	// A panic in a function of the Collector's Options would keep Sentinel's own statistics from hearing of the end, and its
	// rules would refuse calls for ever. Sentinel logs the panics of slots; so does this.
	defer func() {
		if v := recover(); v != nil {
			logging.Error(fmt.Errorf("%v", v), "sentinelstat: panic in Exception or ExceptionClass", "resource", ctx.Resource.Name())
		}
	}()
	entry.Exit(ctx.Err())
}

// enter records that Sentinel let a call pass.
func (s *Slot) enter(ctx *base.EntryContext) *collector.Entry {
	opts := []collector.CallOption{collector.Admitted(), batch(ctx), traffic(ctx)}
	if d := since(ctx); d > time.Millisecond { // one may be none that crossed a boundary
		opts = append(opts, collector.StartedAt(time.Now().Add(-d)))
	}
	_, entry, _ := s.c.Enter(context.Background(), ctx.Resource.Name(), opts...) // Admitted calls are not refused
	return &entry
}

// since is how long ago Sentinel was asked, in whole milliseconds of its clock, which may go back.
func since(ctx *base.EntryContext) time.Duration {
	return time.Duration(util.CurrentTimeMillis()-ctx.StartTime()) * time.Millisecond
}

func batch(ctx *base.EntryContext) collector.CallOption {
	return collector.Batch(int64(ctx.Input.BatchCount))
}

func traffic(ctx *base.EntryContext) collector.CallOption {
	if ctx.Resource.FlowType() == base.Inbound {
		return collector.Inbound()
	}
	return collector.Outbound()
}

// reason describes why a call of a resource was refused, in a few words that do not change with the call: the kind of the
// rule, and which one, as far as that is to be had.
func reason(resource string, err *base.BlockError) (words string) {
	// Sentinel lets a call through if a slot panics: a rule whose String method panics must not do that.
	defer func() { _ = recover() }()
	words = strings.TrimPrefix(err.BlockType().String(), "BlockType")
	if name := ruleName(err.TriggeredRule()); name != "" && name != resource {
		words += " " + name
	}
	return words
}

// ruleName is the rule's ID, or else what it is for; empty if there is no rule.
func ruleName(rule base.SentinelRule) (name string) {
	switch r := rule.(type) {
	case nil:
		return ""
	case *flow.Rule:
		name = r.ID
	case *isolation.Rule:
		name = r.ID
	case *circuitbreaker.Rule:
		name = r.Id
	case *hotspot.Rule:
		name = r.ID
	case *system.Rule:
		name = r.ID
	}
	if name == "" {
		name = rule.ResourceName()
	}
	return name
}
