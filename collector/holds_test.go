package collector_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// BenchmarkHolds reports the longest time for which operations on 50,000 leaves hold the collector's lock. The
// registration of new names waits for this lock. One goroutine runs an operation. Another goroutine polls the lock, and
// measures the longest time during which the lock is not free. The result is meaningful only on an otherwise idle
// machine with two processors.
func BenchmarkHolds(b *testing.B) {
	const resources, origins = 10_000, 5
	windows := node.Options{History: node.Minute}
	for name, work := range map[string]func(c *collector.Collector){
		"retirement": func(c *collector.Collector) {
			for c.Health().Leaves > 0 {
				c.Seal()
			}
		},
		"set-limits": func(c *collector.Collector) {
			for n := range int64(3) {
				_ = c.SetLimits([]collector.Limit{{Resource: "*", Count: 1000 + n}, {
					Resource: "r1*",
					Grade:    collector.Concurrency, Count: n,
				}})
			}
		},
		"health":  func(c *collector.Collector) { c.Health() },
		"metrics": func(c *collector.Collector) { c.Metrics() },
		"new-origins": func(c *collector.Collector) {
			for o := range 4000 {
				_, e, _ := c.Enter(context.Background(), "r0", collector.Origin(fmt.Sprint("new", o)))
				e.Exit(nil)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			longest := time.Duration(0)
			for b.Loop() {
				c := newCollector(
					b,
					collector.Options{Windows: windows, RetireAfter: 62 * time.Second, MaxOrigins: 10_000},
				)
				for r := range resources {
					for o := range origins {
						_, e, _ := c.Enter(
							context.Background(),
							fmt.Sprint("r", r),
							collector.Origin(fmt.Sprint("o", o)),
						)
						e.Exit(nil)
					}
				}
				if name == "retirement" {
					time.Sleep(64 * time.Second)
				}
				longest = max(longest, longestHold(b, c, func() { work(c) }))
			}
			b.ReportMetric(float64(longest.Microseconds()), "max-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// longestHold calls the function work in a new goroutine, and polls the collector's lock until the function returns.
// The result is the longest time during which the lock was not free.
func longestHold(b *testing.B, c *collector.Collector, work func()) (longest time.Duration) {
	b.Helper()
	var done atomic.Bool
	go func() {
		work()
		done.Store(true)
	}()
	for lastFree := time.Now(); !done.Load(); {
		if !collector.IsFree(c) {
			for !collector.IsFree(c) {
			}
			longest = max(longest, time.Since(lastFree))
		}
		lastFree = time.Now()
	}
	return longest
}
