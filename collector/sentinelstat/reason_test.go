package sentinelstat_test

import (
	"maps"
	"testing"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/core/system"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/sentinelstat"
)

// blocked compares want with the number of blocks of a resource for each reason.
func blocked(t *testing.T, c *collector.Collector, resource string, want map[string]int64) {
	t.Helper()
	if got := maps.Collect(c.Resource(resource).Blocks()); !maps.Equal(got, want) {
		t.Errorf("%s: blocks %v, want %v", resource, got, want)
	}
}

func TestFlowRulesAreReasons(t *testing.T) {
	c, chain := newChain(t)
	allow(t, "flow", flow.Rule{})
	refused(t, chain, "flow")
	allow(t, "flow", flow.Rule{ID: "nobody today"})
	refused(t, chain, "flow", sentinel.WithBatchCount(2))
	blocked(t, c, "flow", map[string]int64{"FlowControl": 1, "FlowControl nobody today": 2})
}

func TestIsolationRulesAreReasons(t *testing.T) {
	c, chain := newChain(t)
	if _, err := isolation.LoadRulesOfResource("isolation", []*isolation.Rule{
		{ID: "two at a time", Resource: "isolation", Threshold: 2},
	}); err != nil {
		t.Fatal(err)
	}
	defer isolation.ClearRulesOfResource("isolation")
	first, second := enter(t, chain, "isolation"), enter(t, chain, "isolation")
	refused(t, chain, "isolation")
	first.Exit()
	enter(t, chain, "isolation").Exit()
	second.Exit()
	blocked(t, c, "isolation", map[string]int64{"Isolation two at a time": 1})
	want(t, c, "isolation", "3 pass, 1 block, 3 complete, 0 exception, 0 in flight")
}

func TestCircuitBreakersAreReasons(t *testing.T) {
	c, chain := newChain(t)
	if _, err := circuitbreaker.LoadRulesOfResource("breaker", []*circuitbreaker.Rule{{
		Id: "broken once", Resource: "breaker", Strategy: circuitbreaker.ErrorCount, RetryTimeoutMs: 60_000,
		MinRequestAmount: 1, StatIntervalMs: 60_000, Threshold: 1,
	}}); err != nil {
		t.Fatal(err)
	}
	defer circuitbreaker.ClearRulesOfResource("breaker")
	enter(t, chain, "breaker").Exit(base.WithError(errFailed))
	refused(t, chain, "breaker")
	blocked(t, c, "breaker", map[string]int64{"CircuitBreaking broken once": 1})
}

func TestHotspotRulesAreReasons(t *testing.T) {
	c, chain := newChain(t)
	if _, err := hotspot.LoadRulesOfResource("hotspot", []*hotspot.Rule{{
		ID: "by user", Resource: "hotspot", MetricType: hotspot.QPS, DurationInSec: 1,
		SpecificItems: map[any]int64{"bob": 0},
		Threshold:     1000,
	}}); err != nil {
		t.Fatal(err)
	}
	defer hotspot.ClearRulesOfResource("hotspot")
	enter(t, chain, "hotspot", sentinel.WithArgs("ann")).Exit()
	refused(t, chain, "hotspot", sentinel.WithArgs("bob"))
	blocked(t, c, "hotspot", map[string]int64{"HotSpotParamFlow by user": 1})
}

func TestSystemRulesAreReasons(t *testing.T) {
	c, chain := newChain(t)
	defer system.ClearRules()
	for _, id := range []string{"", "full"} {
		if _, err := system.LoadRules([]*system.Rule{{ID: id, MetricType: system.InboundQPS}}); err != nil {
			t.Fatal(err)
		}
		refused(t, chain, "system", sentinel.WithTrafficType(base.Inbound))
	}
	blocked(t, c, "system", map[string]int64{"System inboundQPS": 1, "System full": 1})
}

// own is a user-defined slot that refuses calls with a user-defined rule.
type own struct {
	kind base.BlockType
	rule base.SentinelRule
}

func (o own) Order() uint32 { return 1 }

func (o own) Check(*base.EntryContext) *base.TokenResult {
	return base.NewTokenResultBlockedWithCause(o.kind, "", o.rule, nil)
}

type rule string

func (r rule) String() string { return string(r) }

func (r rule) ResourceName() string {
	if r == "broken" {
		panic(r)
	}
	return string(r)
}

func TestUserDefinedRulesAreReasons(t *testing.T) {
	const quota, unknown = base.BlockType(100), base.BlockType(101)
	_ = base.RegistryBlockType(quota, "Quota") // returns an error if the test runs twice (-count=2)
	c, _ := newChain(t)
	for _, o := range []own{
		{quota, rule("tenants")},
		{quota, rule("own")}, // the rule has the same resource as the call
		{quota, nil},
		{unknown, nil},
		{base.BlockTypeUnknown, nil},
		{quota, rule("broken")},
		{base.BlockTypeFlow, (*flow.Rule)(nil)}, // from a throttling checker without a rule
	} {
		d, chain := newChain(t)
		chain.AddRuleCheckSlot(o)
		refused(t, chain, "own")
		for reason, n := range d.Resource("own").Blocks() {
			for range n {
				c.Resource("own").Block(reason)
			}
		}
	}
	blocked(t, c, "own", map[string]int64{"Quota tenants": 1, "Quota": 3, "101": 1, "Unknown": 1, "FlowControl": 1})
}

func TestABlockWithoutAnErrorHasNoReason(t *testing.T) {
	c, chain := newChain(t)
	ctx := chain.GetPooledContext()
	ctx.Resource = base.NewResourceWrapper("no reason", base.ResTypeCommon, base.Inbound)
	sentinelstat.NewSlot(c).OnEntryBlocked(ctx, nil)
	blocked(t, c, "no reason", map[string]int64{collector.Unspecified: 1})
}

// There can be any number of rule IDs, because a service can reload its rules with other IDs. The number of reasons
// stays bounded.
func TestReasonsAreBounded(t *testing.T) {
	c, chain := newChain(t)
	for i := range 100 {
		allow(t, "many", flow.Rule{ID: string(rune('A' + i))})
		refused(t, chain, "many")
	}
	got := maps.Collect(c.Resource("many").Blocks())
	var sum int64
	for _, n := range got {
		sum += n
	}
	if len(got) > 16 || got[collector.Other] == 0 || sum != 100 {
		t.Errorf("%d reasons, %d blocks: %v", len(got), sum, got)
	}
}
