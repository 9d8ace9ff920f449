// Package sentinelstat counts the calls of a service that uses sentinel-golang. It provides a statistics slot for
// package collector.
//
//	import sentinel "github.com/alibaba/sentinel-golang/api"
//
//	c, err := collector.New(collector.Options{})
//	…
//	sentinel.GlobalSlotChain().AddStatSlot(sentinelstat.NewSlot(c)) // once, before the first entry
//
// From then on, every call of sentinel.Entry is counted, including the calls of all adapters. To count only the calls
// of a separate chain:
//
//	chain := sentinel.BuildDefaultSlotChain()
//	chain.AddStatSlot(sentinelstat.NewSlot(c))
//	…
//	e, blocked := sentinel.Entry("checkout", sentinel.WithSlotChain(chain))
//
// Sentinel's own statistics remain, because its rules need them. The slot refuses no call, because Sentinel calls the
// slot after a call was admitted. Limits of the Collector therefore do not refuse such calls either, but they count the
// calls.
//
// # What is counted
//
// A call passes and is in flight when Sentinel admits it, and completes at its first Exit. Its response time begins at
// the call of sentinel.Entry, so it includes the wait for a throttling rule. A call is an exception if its entry has an
// error at its Exit, for example from sentinel.TraceError, and the options of the Collector accept the error.
//
// A call that a rule refused is a block. The reason of the block is the kind of the rule in Sentinel's terms, followed
// by the ID of the rule or, without an ID, by the resource of the rule. If this ID or resource equals the resource of
// the call, the reason is the kind alone. Examples are "FlowControl", "Isolation two at a time" and "System
// inboundQPS". If a rule refuses a batch of n, the batch counts as n blocks. Otherwise it counts as n passes and n
// completions, but as one call in flight. A batch of 0 is one call. Completions have no code, because Sentinel has no
// codes.
//
// Each call counts once, and concurrency is never negative, even if other slots panic. Sentinel logs such a panic and
// lets the call continue, with the panic as its error. If another slot panics before Sentinel passes the call to this
// slot, the call counts only when it completes: as a pass, a completion and an exception. A call that is counted as a
// pass remains a pass, and a call that is counted as a block remains a block. The slot is the first of the statistics
// slots, so it counts a call before the other statistics slots can panic. Panics in the functions of the Collector's
// options are recovered and written to Sentinel's log, because Sentinel's own statistics run after this slot.
//
// # Caveats
//
// The package is a separate module, so that importing package collector does not require Sentinel. It supports
// sentinel-golang v1.0.4.
//
// A call costs about 0.5 µs and two allocations of 64 bytes together, in addition to the 1.5 to 2 µs of Sentinel. A
// blocked call costs one additional allocation of 24 bytes.
//
// Sentinel's entries have no context.Context, origin or entrance. There is no call tree: a nested entry is another call
// that enters the process, by [collector.DefaultEntrance]. The views of the process and of this entrance therefore
// count entries, not requests.
//
// Sentinel's clock has a resolution of a millisecond. If a call waits at most 2 ms before it is admitted, its response
// time may lack the wait. If the wait is longer, the response time may be off by 1 ms. Otherwise response times are
// exact. The wait is measured with the machine's clock even if [collector.Options] replaces the clock of the Collector.
//
// Sentinel reuses its contexts. An error that is set on an entry after its Exit, by sentinel.TraceError or by a second
// Exit, may affect another call. The slot removes an error that was set before the other call began.
//
// An entry that never exits stays in flight forever. An entry also stays in flight forever if Sentinel does not report
// its end to the slot. This happens in two cases:
//
//   - The exit handler of the entry (WhenExit) panics.
//   - Another statistics slot panics at the end of the call, and this other slot has order 0 and was added to the chain
//     before the slot of this package.
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

// Slot records the calls of a Sentinel slot chain in a Collector. Add it to a chain once, with
// base.SlotChain.AddStatSlot. Add it before calls use the chain, because Sentinel does not lock the chain. A chain can
// have slots for several Collectors, and chains can share a slot.
//
// Sentinel calls the methods of a Slot. They are safe for concurrent use; Sentinel calls them one after the other for
// the same entry. The state of a call in flight is in the context of the entry, which Sentinel clears at the Exit of
// the entry.
type Slot struct{ c *collector.Collector }

var _ base.StatSlot = (*Slot)(nil)

// NewSlot returns a slot that records into c. If c is nil, the slot records nothing.
func NewSlot(c *collector.Collector) *Slot { return &Slot{c} }

// Order returns 0, so the slot is the first of the statistics slots. If a slot panics, Sentinel does not call the slots
// after it.
func (s *Slot) Order() uint32 { return 0 }

// OnEntryPassed records that a call has passed and is in flight.
func (s *Slot) OnEntryPassed(ctx *base.EntryContext) {
	if ctx.Err() != nil {
		ctx.SetError(nil) // an earlier call with this context got this error after its Exit
	}
	if ctx.Data == nil { // Sentinel has not created this context
		ctx.Data = map[any]any{}
	}
	ctx.Data[s] = s.enter(ctx)
}

// OnEntryBlocked records that a rule refused a call.
func (s *Slot) OnEntryBlocked(ctx *base.EntryContext, err *base.BlockError) {
	name := ctx.Resource.Name()
	s.c.Block(context.Background(), name, reason(name, err), batch(ctx), traffic(ctx))
}

// OnCompleted records the end of a call that was admitted.
func (s *Slot) OnCompleted(ctx *base.EntryContext) {
	entry, ok := ctx.Data[s].(*collector.Entry)
	if !ok { // another slot panicked before OnEntryPassed
		entry = s.enter(ctx)
	}
	delete(ctx.Data, s) // Sentinel reuses the map with the context
	// A panic in a function of the Collector's options would prevent Sentinel's own statistics from recording the end
	// of the call, and Sentinel's rules might then refuse calls forever. Recover the panic, and log it as Sentinel logs
	// panics of slots.
	defer func() {
		if v := recover(); v != nil {
			logging.Error(
				fmt.Errorf("%v", v), "sentinelstat: panic in Exception or ExceptionClass", "resource",
				ctx.Resource.Name(),
			)
		}
	}()
	entry.Exit(ctx.Err())
}

// enter records a call that Sentinel has admitted, and returns its entry.
func (s *Slot) enter(ctx *base.EntryContext) *collector.Entry {
	opts := []collector.CallOption{collector.Admitted(), batch(ctx), traffic(ctx)}
	if d := since(ctx); d > time.Millisecond { // 1 ms may be rounding: the call may have crossed a millisecond boundary
		opts = append(opts, collector.StartedAt(time.Now().Add(-d)))
	}
	// Enter refuses no call with the option Admitted.
	_, entry, _ := s.c.Enter(context.Background(), ctx.Resource.Name(), opts...)
	return &entry
}

// since returns the time since the call of sentinel.Entry, in whole milliseconds of Sentinel's clock. The result may be
// negative, because Sentinel's clock may go back.
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

// reason returns the reason of a block: the kind of the rule, followed by the name of the rule if the name is not empty
// and differs from resource. All calls of the resource that the rule refuses have the same reason.
func reason(resource string, err *base.BlockError) (words string) {
	// If a slot panics, Sentinel lets the call pass. A panic in a method of a rule must not have this effect.
	defer func() { _ = recover() }()
	words = strings.TrimPrefix(err.BlockType().String(), "BlockType")
	if name := ruleName(err.TriggeredRule()); name != "" && name != resource {
		words += " " + name
	}
	return words
}

// ruleName returns the ID of the rule, or the resource of a rule without an ID. The name is empty if rule is nil.
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
