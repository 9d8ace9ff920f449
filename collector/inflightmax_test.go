package collector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// inFlightCounter counts the calls in flight of a service. It also keeps the maximum of this count in each second.
type inFlightCounter struct {
	mu      sync.Mutex
	current int64
	maxima  map[int64]int64 // maximum in flight of each second, by Unix second
}

// add adds n to the number of calls in flight, and updates the maximum of the current second.
func (m *inFlightCounter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	second := time.Now().Unix()
	before := m.current
	m.current += n
	m.maxima[second] = max(m.maxima[second], before, m.current)
}

// For each second, the statistics report a lower and an upper bound of the maximum number of calls in flight. The exact
// maximum lies between these bounds. The test logs averages of the bounds and of the maximum; docs/limitations.md lists
// these averages. Calls arrive independently of each other, and have random response times.
func TestMaxInFlightOfManyLeaves(t *testing.T) {
	for _, tc := range []struct {
		resources, origins int
		inFlight           float64       // average number of calls in flight
		rt                 time.Duration // average response time
		// Calls arrive only in the first part of each second; busy is the length of this part.
		busy time.Duration
	}{
		{1, 1, 20, 50 * ms, time.Second},
		{1, 100, 20, 50 * ms, time.Second},
		{50, 3, 40, 50 * ms, time.Second},
		{50, 3, 40, 50 * ms, 400 * ms},
		{300, 1, 2, 10 * ms, time.Second},
	} {
		name := fmt.Sprintf("%d×%d, %v in flight, busy for %v", tc.resources, tc.origins, tc.inFlight, tc.busy)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 60
				random := rand.New(rand.NewPCG(1, 53))
				c := newCollector(t, collector.Options{})
				truth := &inFlightCounter{maxima: map[int64]int64{}}
				first := c.Seal().Open + 1
				var wg sync.WaitGroup
				for c.Seal().Open < first+seconds {
					rate := tc.inFlight / tc.rt.Seconds() / tc.busy.Seconds() // calls per second while calls arrive
					time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
					if now := time.Now(); now.Sub(now.Truncate(time.Second)) > tc.busy {
						time.Sleep(time.Until(now.Truncate(time.Second).Add(time.Second)))
						continue
					}
					name, origin := fmt.Sprint("r", random.IntN(tc.resources)), fmt.Sprint("o", random.IntN(tc.origins))
					rt := time.Duration(random.ExpFloat64() * float64(tc.rt))
					wg.Go(func() {
						truth.add(1)
						_, e, err := c.Enter(context.Background(), name, collector.Inbound(), collector.Origin(origin))
						if err != nil {
							t.Error(err)
						}
						time.Sleep(rt)
						e.Exit(nil)
						truth.add(-1)
					})
				}
				wg.Wait()
				var lower, exact, upper int64
				var average time.Duration
				for _, m := range c.Inbound().Node().AppendSeconds(nil, first, first+seconds) {
					want := truth.maxima[m.Start.Unix()]
					if m.InFlightMax > want || want > m.InFlightMaxUpper {
						t.Errorf("%v: %d in flight, want from %d to %d",
							m.Start, want, m.InFlightMax, m.InFlightMaxUpper)
					}
					lower, exact, upper = lower+m.InFlightMax, exact+want, upper+m.InFlightMaxUpper
					average += m.InFlightTime
				}
				mean := func(n int64) float64 { return float64(n) / seconds }
				t.Logf("on average %.1f in flight; maximum at least %.1f, exactly %.1f, at most %.1f",
					average.Seconds()/seconds, mean(lower), mean(exact), mean(upper))
			})
		})
	}
}
