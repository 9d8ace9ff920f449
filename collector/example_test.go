package collector_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/collector"
)

func Example() {
	// The clock of the example; leave Now out for the real one.
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
