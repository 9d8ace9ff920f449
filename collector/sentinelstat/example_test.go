package sentinelstat_test

import (
	"errors"
	"fmt"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/isolation"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/sentinelstat"
)

func ExampleNewSlot() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	chain := sentinel.BuildDefaultSlotChain() // or sentinel.GlobalSlotChain(), for all calls
	chain.AddStatSlot(sentinelstat.NewSlot(c))
	if _, err := isolation.LoadRules([]*isolation.Rule{
		{ID: "one at a time", Resource: "checkout", Threshold: 1},
	}); err != nil {
		panic(err)
	}
	defer isolation.ClearRules()

	checkout := func(work func() error) {
		e, blocked := sentinel.Entry("checkout", sentinel.WithSlotChain(chain))
		if blocked != nil {
			return
		}
		defer e.Exit()
		sentinel.TraceError(e, work())
	}
	checkout(func() error { return nil })
	checkout(func() error {
		checkout(func() error { return nil }) // the rule refuses this call
		return errors.New("card refused")
	})

	s := c.Resource("checkout").Snapshot(nil)
	fmt.Printf(
		"%d passed, %d completed, %d failed, %d in flight\n", s.Total.Pass, s.Total.Complete, s.Total.Exception,
		s.InFlight,
	)
	for reason, n := range c.Resource("checkout").Blocks() {
		fmt.Printf("%d blocked: %s\n", n, reason)
	}
	// Output:
	// 2 passed, 2 completed, 1 failed, 0 in flight
	// 1 blocked: Isolation one at a time
}
