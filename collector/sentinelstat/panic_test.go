package sentinelstat_test

import (
	"testing"
	"time"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/core/stat"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/sentinelstat"
)

// broken implements all kinds of slots, and panics in one method.
type broken struct {
	in    string
	order uint32
}

func (b *broken) at(method string) {
	if method == b.in {
		panic("broken in " + method)
	}
}

func (b *broken) Order() uint32                                       { return b.order }
func (b *broken) Prepare(*base.EntryContext)                          { b.at("Prepare") }
func (b *broken) OnEntryPassed(*base.EntryContext)                    { b.at("OnEntryPassed") }
func (b *broken) OnEntryBlocked(*base.EntryContext, *base.BlockError) { b.at("OnEntryBlocked") }
func (b *broken) OnCompleted(*base.EntryContext)                      { b.at("OnCompleted") }
func (b *broken) Check(ctx *base.EntryContext) (result *base.TokenResult) {
	b.at("Check")
	return nil
}

// In each case, a slot panics during a call. Even so, every call counts as one pass and one completion, and no call is
// left in flight. Sentinel's own statistics count some of these calls as completed but not as passed, so Sentinel's
// concurrency stays below zero.
func TestCountsWithPanickingSlots(t *testing.T) {
	const calls = 3
	for _, tc := range []struct {
		name          string
		slot          broken
		during, after string
	}{
		{
			"preparing",
			broken{in: "Prepare"},
			"0 pass, 0 block, 0 complete, 0 exception, 0 in flight",
			"1 pass, 0 block, 1 complete, 1 exception, 0 in flight",
		},
		{
			"checking",
			broken{in: "Check", order: 9000},
			"0 pass, 0 block, 0 complete, 0 exception, 0 in flight",
			"1 pass, 0 block, 1 complete, 1 exception, 0 in flight",
		},
		{
			"counting passes",
			broken{in: "OnEntryPassed"},
			"1 pass, 0 block, 0 complete, 0 exception, 1 in flight",
			"1 pass, 0 block, 1 complete, 1 exception, 0 in flight",
		},
		{
			"counting completions",
			broken{in: "OnCompleted"},
			"1 pass, 0 block, 0 complete, 0 exception, 1 in flight",
			"1 pass, 0 block, 1 complete, 0 exception, 0 in flight",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range calls {
				c, chain := newChain(t)
				chain.AddStatPrepareSlot(&tc.slot)
				chain.AddRuleCheckSlot(&tc.slot)
				chain.AddStatSlot(&tc.slot)
				begin := time.Now()
				e := enter(t, chain, tc.name)
				want(t, c, tc.name, tc.during)
				time.Sleep(10 * time.Millisecond)
				e.Exit()
				e.Exit()
				want(t, c, tc.name, tc.after)
				rt, took := c.Resource(tc.name).Snapshot(nil).Total.RTMax, time.Since(begin)
				if rt < 8*time.Millisecond || rt > took+2*time.Millisecond {
					t.Errorf("a call of %v took %v", took, rt)
				}
			}
		})
	}
}

// If a statistics slot panics after a rule has refused a call, Sentinel lets the call continue. The call counts as one
// block.
func TestBlockCountsOnceIfAnotherSlotPanics(t *testing.T) {
	c, chain := newChain(t)
	chain.AddStatSlot(&broken{in: "OnEntryBlocked"})
	allow(t, "half refused", flow.Rule{})
	enter(t, chain, "half refused").Exit()
	want(t, c, "half refused", "0 pass, 1 block, 0 complete, 0 exception, 0 in flight")
}

// A call can get the pooled context of a call that panicked. The earlier panic must not affect the later call.
func TestCallsAfterAPanic(t *testing.T) {
	c, chain := newChain(t)
	bad, worse := newChain(t)
	worse.AddRuleCheckSlot(&broken{in: "Check"})
	for range 100 {
		enter(t, worse, "bad").Exit()
		enter(t, chain, "good").Exit()
	}
	want(t, bad, "bad", "100 pass, 0 block, 100 complete, 100 exception, 0 in flight")
	want(t, c, "good", "100 pass, 0 block, 100 complete, 0 exception, 0 in flight")
}

// If the exit handler of an entry panics, its call stays in flight. The documentation of the package lists this
// limitation.
func TestAnExitHandlerThatPanicsLeavesTheCallInFlight(t *testing.T) {
	c, chain := newChain(t)
	e := enter(t, chain, "handler")
	e.WhenExit(func(*base.SentinelEntry, *base.EntryContext) error { panic("broken") })
	e.Exit(base.WithError(errFailed))
	want(t, c, "handler", "1 pass, 0 block, 0 complete, 0 exception, 1 in flight")
}

// Regression: a panic in a function of the Collector's options hid the end of calls from Sentinel's own statistics. A
// rule for two concurrent calls then refused every call after the second.
func TestRegressionAnExceptionStoppedSentinelsOwnStatistics(t *testing.T) {
	const name = "exception panics"
	c, err := collector.New(collector.Options{Exception: func(error) bool { panic("boom") }})
	if err != nil {
		t.Fatal(err)
	}
	chain := sentinel.BuildDefaultSlotChain()
	chain.AddStatSlot(sentinelstat.NewSlot(c))
	if _, err := isolation.LoadRules([]*isolation.Rule{{
		Resource: name, MetricType: isolation.Concurrency,
		Threshold: 2,
	}}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = isolation.ClearRules() }()
	for range 3 {
		enter(t, chain, name).Exit(base.WithError(errFailed))
	}
	if n := stat.GetResourceNode(name).CurrentConcurrency(); n != 0 {
		t.Errorf("%d in flight for Sentinel", n)
	}
	want(t, c, name, "3 pass, 0 block, 3 complete, 3 exception, 0 in flight")
}

// Regression: a context that Sentinel did not create has no Data map. A call with such a context stayed in flight.
func TestRegressionContextWithoutData(t *testing.T) {
	c, _ := newChain(t)
	slot := sentinelstat.NewSlot(c)
	ctx := base.NewEmptyEntryContext()
	ctx.Resource = base.NewResourceWrapper("own", base.ResTypeCommon, base.Inbound)
	ctx.Input = &base.SentinelInput{BatchCount: 1}
	slot.OnEntryPassed(ctx)
	slot.OnCompleted(ctx)
	want(t, c, "own", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
}
