package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/alibaba/sentinel-golang/core/flow"
	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/collector"
)

// NeverReached is a limit that no benchmark reaches.
const NeverReached = 1 << 40

// Limiters are ways to admit or refuse a call, and to record it: windowstat's handle without a limit, for comparison,
// and limiters that allow count calls a second for each resource. Their Call panics if the call is refused.
func Limiters(count int64) []Rival {
	return []Rival{
		{"windowstat-without-limit", "a limit", newWindowstat},
		{"windowstat", "", func(names []string) (Recorder, error) { return newWindowstatLimit(names, count) }},
		{
			"rate-and-windowstat", "blocks, limits on what is in flight",
			func(names []string) (Recorder, error) { return newRate(names, count) },
		},
		{
			"sentinel-golang-entry",
			"a check and a count in one step: more may pass; histogram, longest response time, totals",
			func(names []string) (Recorder, error) { return newSentinelRule(names, count) },
		},
	}
}

var errRefused = errors.New("bench: a limit refused the call")

// newWindowstatLimit keeps a handle for each resource, with a limit on QPS for each.
func newWindowstatLimit(names []string, count int64) (Recorder, error) {
	c, list, err := resources(names)
	if err != nil {
		return Recorder{}, err
	}
	limits := make([]collector.Limit, len(names))
	for i, name := range names {
		limits[i] = collector.Limit{Resource: name, Count: count}
	}
	return Recorder{
		Call: func(i int) {
			e, err := list[i].TryEnter()
			if err != nil {
				panic(err)
			}
			e.Exit(nil)
		},
		Warm: true,
	}, c.SetLimits(limits)
}

// NewConcurrency keeps a handle for one resource that the given number of origins have called, with a limit of count
// calls in flight on all resources. Call panics if the limit refuses it.
func NewConcurrency(origins int, count int64) (Recorder, error) {
	c, err := collector.New(collector.Options{MaxOrigins: origins + 1})
	if err != nil {
		return Recorder{}, err
	}
	name := Names(1)[0]
	for i := range origins {
		_, e, err := c.Enter(context.Background(), name, collector.Origin(fmt.Sprintf("origin %04d", i)))
		if err != nil {
			return Recorder{}, err
		}
		e.Exit(nil)
	}
	r := c.Resource(name)
	return Recorder{
		Call: func(int) {
			e, err := r.TryEnter()
			if err != nil {
				panic(err)
			}
			e.Exit(nil)
		},
		Warm: true,
	}, c.SetLimits([]collector.Limit{{Resource: "*", Grade: collector.Concurrency, Count: count}})
}

// newRate checks a token bucket of golang.org/x/time/rate, and records the admitted calls with windowstat's handle.
func newRate(names []string, count int64) (Recorder, error) {
	_, list, err := resources(names)
	limiters := make([]*rate.Limiter, len(names))
	for i := range limiters {
		limiters[i] = rate.NewLimiter(rate.Limit(count), int(count))
	}
	return Recorder{
		Call: func(i int) {
			if !limiters[i].Allow() {
				panic(errRefused)
			}
			e := list[i].Enter()
			e.Exit(nil)
		},
		Warm: true,
	}, err
}

// newSentinelRule is newSentinelEntry with a flow rule for each resource. The default controller of the rule refuses
// the excess calls.
func newSentinelRule(names []string, count int64) (Recorder, error) {
	rec, err := sentinelEntries(names)
	if err != nil {
		return Recorder{}, err
	}
	rules := make([]*flow.Rule, len(names))
	for i, name := range names {
		rules[i] = &flow.Rule{
			Resource:               name,
			TokenCalculateStrategy: flow.Direct,
			ControlBehavior:        flow.Reject,
			Threshold:              float64(count),
			StatIntervalInMs:       1000,
		}
	}
	if _, err := flow.LoadRules(rules); err != nil {
		return Recorder{}, fmt.Errorf("bench: %w", err)
	}
	rec.Close = func() { _ = flow.ClearRules() }
	return rec, nil
}
