package demo

import (
	"context"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Incidents are the ways in which the demo can break itself:
//   - hang: the database does not answer queries for products, and its callers wait
//   - limit: a quarter of the usual calls of GET /products/{id} is allowed
//   - retries: each payment fails, and clients try three times more at once
var Incidents = []string{hang, lowLimit, retries}

const (
	hang     = "hang"
	lowLimit = "limit"
	retries  = "retries"
)

// incidentLength is how long an incident lasts; DefaultAfter is how long the demo runs before it, so that there is something usual.
const (
	incidentLength = 30 * time.Second
	DefaultAfter   = time.Minute
)

// incident breaks the shop from a whole second on. One without a name never does. What it breaks asks whether it is on.
type incident struct {
	name     string
	from, to time.Time
	over     chan struct{} // closed when the load ends
}

// now reports whether an incident of this name is on.
func (i *incident) now(name string) bool {
	t := time.Now()
	return i.name == name && !t.Before(i.from) && t.Before(i.to)
}

// sleep waits for a time, or until a channel is closed; then it reports false.
func sleep(d time.Duration, end <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

// run waits until ctx ends, when nothing hangs any more. A limit that is too low is set for the time of its incident.
func (i *incident) run(ctx context.Context, c *collector.Collector, usual []collector.Limit, rate float64) {
	defer close(i.over)
	if i.name == lowLimit && sleep(time.Until(i.from), ctx.Done()) {
		const products = "GET /products/{id}"
		low := collector.Limit{Resource: products, Count: max(int64(rate*productsShare/4), 1)}
		_ = c.SetLimits(append(slices.Clone(usual), low)) // they are valid
		sleep(time.Until(i.to), ctx.Done())
		_ = c.SetLimits(usual)
	}
	<-ctx.Done()
}
