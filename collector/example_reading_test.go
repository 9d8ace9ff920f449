package collector_test

import (
	"fmt"
	"log"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Code that makes decisions based on the current load reads the sliding window. Code that writes reports reads sealed
// seconds, which never change.
func ExampleView_Last() {
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return clock }})
	if err != nil {
		log.Fatal(err)
	}
	query := c.Resource("db: load user")
	for range 30 {
		e := query.Enter()
		clock = clock.Add(10 * time.Millisecond)
		e.Exit(nil)
	}
	fmt.Println(query.PassQPS(), "passes per second,", query.InFlight(), "in flight, average", query.Window().AvgRT())

	clock = clock.Add(time.Second)
	for _, second := range query.View().Last(1) {
		fmt.Println(
			second.Start.Format(time.TimeOnly),
			second.Pass,
			"passed,",
			second.Exception,
			"failed,",
			second.InFlightAvg(),
			"in flight on average",
		)
	}
	// Output:
	// 30 passes per second, 0 in flight, average 10ms
	// 03:04:05 30 passed, 0 failed, 0.3 in flight on average
}
