package collector_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/collector"
)

func Example() {
	// The example sets the clock itself. Omit the option Now to use the real clock.
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	checkout := c.Resource("checkout")

	for i := range 100 {
		_ = checkout.Do(func() error {
			now = now.Add(5 * time.Millisecond)
			if i%10 == 9 {
				return errors.New("card refused")
			}
			return nil
		})
	}
	now = now.Add(time.Second)

	s := checkout.Snapshot(nil)
	fmt.Printf("in all: %d calls, %d failed, average %v\n", s.Total.Complete, s.Total.Exception, s.Total.AvgRT())
	fmt.Printf("second %s: %d calls\n", s.Last.Start.Format(time.TimeOnly), s.Last.Pass)
	// Output:
	// in all: 100 calls, 10 failed, average 5ms
	// second 03:04:05: 100 calls
}

// Many limiters count in fixed windows of one second. A fixed window forgets its calls when it ends. Suppose that 20
// and then 80 calls arrive in one second, and 80 and then 20 in the next second. From the middle of the first second to
// the middle of the next second, fixed windows with a limit of 100 admit 80 + 80 = 160 calls. The window of a Limit
// slides by buckets, and admits 80 + 20 = 100 calls.
func ExampleCollector_SetLimits() {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "search", Count: 100}}); err != nil {
		panic(err)
	}
	search := c.Resource("search")
	fixed := map[time.Time]int{}
	for _, burst := range []struct {
		at    time.Duration
		calls int
	}{{100, 20}, {900, 80}, {1100, 80}, {1900, 20}} {
		now = start.Add(burst.at * time.Millisecond)
		sliding := 0
		for range burst.calls {
			if e, err := search.TryEnter(); err == nil {
				e.Exit(nil)
				sliding++
			}
		}
		window := now.Truncate(time.Second)
		passed := min(burst.calls, 100-fixed[window])
		fixed[window] += passed
		fmt.Printf(
			"at %4d ms, %d calls: a fixed window admits %d, the Limit admits %d\n",
			burst.at,
			burst.calls,
			passed,
			sliding,
		)
	}
	// Output:
	// at  100 ms, 20 calls: a fixed window admits 20, the Limit admits 20
	// at  900 ms, 80 calls: a fixed window admits 80, the Limit admits 80
	// at 1100 ms, 80 calls: a fixed window admits 80, the Limit admits 20
	// at 1900 ms, 20 calls: a fixed window admits 20, the Limit admits 20
}

// A call that enters with the context of another call is below that call in the call tree, and inherits the origin of
// that call.
func ExampleCollector_Enter() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	ctx, request, _ := c.Enter(
		context.Background(),
		"GET /cart",
		collector.Inbound(),
		collector.Origin("mobile"),
		collector.Entrance("http"),
	)
	_, query, _ := c.Enter(ctx, "db: cart")
	query.Exit(nil)
	request.Exit(nil)

	for _, entrance := range c.Tree().Children() {
		fmt.Println(entrance.Name())
		for _, resource := range entrance.Children() {
			fmt.Println(" ", resource.Name())
			for _, below := range resource.Children() {
				fmt.Println("   ", below.Name())
			}
		}
	}
	for origin := range c.Resource("db: cart").Origins() {
		fmt.Println("origin of the database call:", origin)
	}
	// Output:
	// http
	//   GET /cart
	//     db: cart
	// origin of the database call: mobile
}

// MaxMemory bounds the memory of all statistics, even if clients invent names.
func ExampleCollector_Memory() {
	c, err := collector.New(collector.Options{MaxMemory: 64 << 20})
	if err != nil {
		panic(err)
	}
	e := c.Resource("checkout").Enter()
	e.Exit(nil)
	fmt.Println(c.Memory().Sum() < c.Health().MaxMemory)
	// Output: true
}
