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
