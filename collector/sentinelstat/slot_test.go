package sentinelstat_test

import (
	"errors"
	"testing"
	"time"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/stat"
	"github.com/alibaba/sentinel-golang/util"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/sentinelstat"
)

var errFailed = errors.New("failed")

// allow loads a flow rule for a resource, and removes it when the test ends.
func allow(t testing.TB, resource string, rule flow.Rule) {
	t.Helper()
	rule.Resource = resource
	_ = flow.ClearRulesOfResource(resource) // Sentinel ignores a rule that differs only in its ID
	if _, err := flow.LoadRulesOfResource(resource, []*flow.Rule{&rule}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flow.ClearRulesOfResource(resource) })
}

func TestACallPassesIsInFlightAndCompletes(t *testing.T) {
	c, chain := newChain(t)
	e := enter(t, chain, "call")
	want(t, c, "call", "1 pass, 0 block, 0 complete, 0 exception, 1 in flight")
	time.Sleep(5 * time.Millisecond)
	e.Exit()
	want(t, c, "call", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
	if rt := c.Resource("call").Snapshot(nil).Total.RTMin; rt < 5*time.Millisecond {
		t.Errorf("response time %v", rt)
	}
}

func TestAnEntryWithAnErrorIsAnException(t *testing.T) {
	c, chain := newChain(t)
	e := enter(t, chain, "traced")
	sentinel.TraceError(e, errFailed)
	e.Exit()
	enter(t, chain, "traced").Exit(base.WithError(errFailed))
	e = enter(t, chain, "traced")
	e.WhenExit(func(_ *base.SentinelEntry, ctx *base.EntryContext) error {
		ctx.SetError(errFailed)
		return nil
	})
	e.Exit()
	want(t, c, "traced", "3 pass, 0 block, 3 complete, 3 exception, 0 in flight")
}

func TestOptionsSelectExceptions(t *testing.T) {
	c, err := collector.New(collector.Options{
		Exception:      collector.Ignore(errFailed),
		ExceptionClass: func(err error) string { return err.Error() },
	})
	if err != nil {
		t.Fatal(err)
	}
	chain := sentinel.BuildDefaultSlotChain()
	chain.AddStatSlot(sentinelstat.NewSlot(c))
	enter(t, chain, "ignored").Exit(base.WithError(errFailed))
	enter(t, chain, "ignored").Exit(base.WithError(errors.New("other")))
	want(t, c, "ignored", "2 pass, 0 block, 2 complete, 1 exception, 0 in flight")
	for class, n := range c.Resource("ignored").Exceptions() {
		if class != "other" || n != 1 {
			t.Errorf("%d exceptions of class %q", n, class)
		}
	}
}

func TestABatchCountsAsItsCallsButIsOneInFlight(t *testing.T) {
	c, chain := newChain(t)
	const huge = 4_000_000_000
	e := enter(t, chain, "batch", sentinel.WithBatchCount(huge))
	want(t, c, "batch", "4000000000 pass, 0 block, 0 complete, 0 exception, 1 in flight")
	e.Exit(base.WithError(errFailed))
	want(t, c, "batch", "4000000000 pass, 0 block, 4000000000 complete, 4000000000 exception, 0 in flight")

	allow(t, "refused batch", flow.Rule{})
	refused(t, chain, "refused batch", sentinel.WithBatchCount(huge))
	want(t, c, "refused batch", "0 pass, 4000000000 block, 0 complete, 0 exception, 0 in flight")

	enter(t, chain, "no batch", sentinel.WithBatchCount(0)).Exit()
	want(t, c, "no batch", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
}

func TestInboundTraffic(t *testing.T) {
	c, chain := newChain(t)
	allow(t, "closed", flow.Rule{})
	enter(t, chain, "in", sentinel.WithTrafficType(base.Inbound), sentinel.WithBatchCount(2)).Exit()
	refused(t, chain, "closed", sentinel.WithTrafficType(base.Inbound), sentinel.WithBatchCount(3))
	enter(t, chain, "out", sentinel.WithTrafficType(base.Outbound)).Exit()
	refused(t, chain, "closed")
	if got := c.Inbound().Snapshot(nil).Total; got.Pass != 2 || got.Complete != 2 || got.Block != 3 {
		t.Errorf("inbound: %+v", got)
	}
}

func TestExitTwiceCountsOnce(t *testing.T) {
	c, chain := newChain(t)
	first, second := enter(t, chain, "twice"), enter(t, chain, "twice")
	first.Exit()
	first.Exit()
	want(t, c, "twice", "2 pass, 0 block, 1 complete, 0 exception, 1 in flight")
	second.Exit()
	second.Exit()
	want(t, c, "twice", "2 pass, 0 block, 2 complete, 0 exception, 0 in flight")
}

// Sentinel pools contexts: after a call has exited, the next call gets the same context. The test sets an error in this
// context between the two calls.
func TestErrorAfterExitDoesNotAffectTheNextCall(t *testing.T) {
	c, chain := newChain(t)
	for range 100 {
		e := enter(t, chain, "late")
		e.Exit()
		sentinel.TraceError(e, errFailed)
		e = enter(t, chain, "late")
		e.Exit()
		e.Exit(base.WithError(errFailed))
	}
	want(t, c, "late", "200 pass, 0 block, 200 complete, 0 exception, 0 in flight")
}

func TestWaitingForAThrottlingRuleIsPartOfTheResponseTime(t *testing.T) {
	c, chain := newChain(t)
	allow(t, "throttled", flow.Rule{ControlBehavior: flow.Throttling, Threshold: 20, MaxQueueingTimeMs: 10_000})
	var waited, took time.Duration
	for range 3 {
		begin := time.Now()
		e := enter(t, chain, "throttled")
		waited = max(waited, time.Since(begin))
		e.Exit()
		took = max(took, time.Since(begin))
	}
	if rt := c.Resource("throttled").Snapshot(nil).Total.RTMax; rt < waited-2*time.Millisecond ||
		rt > took+2*time.Millisecond {
		t.Errorf("the longest response time is %v; the longest wait was %v, the longest call %v", rt, waited, took)
	}
}

// Sentinel rounds the start time of a call down to a millisecond. A response time from this start time would be half a
// millisecond too long on average.
func TestShortCallsAreMeasuredExactly(t *testing.T) {
	c, chain := newChain(t)
	const calls = 1000
	var most time.Duration
	for range calls {
		begin := time.Now()
		enter(t, chain, "short").Exit()
		took := time.Since(begin)
		// In a call of a millisecond or more, the slot may measure a millisecond too much.
		if most += took; took >= time.Millisecond {
			most += time.Millisecond
		}
	}
	if sum := c.Resource("short").Snapshot(nil).Total.RTSum; sum <= 0 || sum > most {
		t.Errorf("%d calls took %v, which is not at most %v", calls, sum, most)
	}
}

// stepping is a clock for Sentinel. Each reading of the clock advances it by step milliseconds.
type stepping struct {
	util.Clock
	ms, step uint64
}

func (s *stepping) CurrentTimeMillis() uint64 {
	s.ms += s.step
	return s.ms
}

func TestClockRoundingIsNoWait(t *testing.T) {
	defer util.SetClock(util.NewRealClock())
	for name, step := range map[string]uint64{"crosses": 1, "goes back": ^uint64(59_999)} {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chain := base.NewSlotChain()
		chain.AddStatSlot(sentinelstat.NewSlot(c))
		util.SetClock(&stepping{util.NewRealClock(), util.CurrentTimeMillis(), step})
		begin := time.Now()
		enter(t, chain, name).Exit()
		if rt, took := c.Resource(name).Snapshot(nil).Total.RTMax, time.Since(begin); rt > took {
			t.Errorf("%s: a call of less than %v took %v", name, took, rt)
		}
	}
}

func TestSentinelStatisticsRemain(t *testing.T) {
	_, chain := newChain(t)
	e := enter(t, chain, "theirs")
	if n := stat.GetResourceNode("theirs").CurrentConcurrency(); n != 1 {
		t.Errorf("Sentinel has %d in flight", n)
	}
	e.Exit()
	if n := stat.GetResourceNode("theirs").CurrentConcurrency(); n != 0 {
		t.Errorf("Sentinel has %d in flight after the exit", n)
	}
}

func TestTheGlobalChain(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sentinel.GlobalSlotChain().AddStatSlot(sentinelstat.NewSlot(c))
	allow(t, "closed to all", flow.Rule{})
	refused(t, nil, "closed to all")
	enter(t, nil, "global").Exit()
	want(t, c, "global", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
	want(t, c, "closed to all", "0 pass, 1 block, 0 complete, 0 exception, 0 in flight")
}

func TestSeveralCollectors(t *testing.T) {
	one, chain := newChain(t)
	two, other := newChain(t)
	shared, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot := sentinelstat.NewSlot(shared)
	chain.AddStatSlot(slot)
	other.AddStatSlot(slot)
	outer := enter(t, chain, "outer")
	enter(t, other, "inner").Exit(base.WithError(errFailed))
	outer.Exit()
	for _, c := range []*collector.Collector{one, shared} {
		want(t, c, "outer", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
	}
	for _, c := range []*collector.Collector{two, shared} {
		want(t, c, "inner", "1 pass, 0 block, 1 complete, 1 exception, 0 in flight")
	}
	if n := len(one.Seal().Resources) + len(two.Seal().Resources) + len(shared.Seal().Resources); n != 4 {
		t.Errorf("%d resources in all", n)
	}
}

func TestCollectorLimitsCountButDoNotRefuse(t *testing.T) {
	c, chain := newChain(t)
	if err := c.SetLimits([]collector.Limit{
		{Resource: "one", Grade: collector.Concurrency, Count: 1},
		{Resource: "none", Grade: collector.QPS, Count: 0},
	}); err != nil {
		t.Fatal(err)
	}
	first, second := enter(t, chain, "one"), enter(t, chain, "one")
	if _, err := c.Resource("one").TryEnter(); !errors.Is(err, collector.ErrBlocked) {
		t.Errorf("TryEnter at the limit: %v", err)
	}
	first.Exit()
	second.Exit()
	want(t, c, "one", "2 pass, 1 block, 2 complete, 0 exception, 0 in flight")
	enter(t, chain, "none").Exit()
	want(t, c, "none", "1 pass, 0 block, 1 complete, 0 exception, 0 in flight")
}

func TestANilCollectorRecordsNothing(t *testing.T) {
	chain := sentinel.BuildDefaultSlotChain()
	chain.AddStatSlot(sentinelstat.NewSlot(nil))
	allow(t, "off and closed", flow.Rule{})
	refused(t, chain, "off and closed", sentinel.WithBatchCount(2))
	e := enter(t, chain, "off")
	sentinel.TraceError(e, errFailed)
	e.Exit()
	if err := e.Context().Err(); err != nil {
		t.Errorf("the exit failed: %v", err)
	}
}
