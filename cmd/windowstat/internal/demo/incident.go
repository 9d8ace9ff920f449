package demo

import (
	"context"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Incidents has the names of the incidents:
//   - hang: the database does not respond to queries for products, and the calls that need them wait;
//   - limit: a limit allows a quarter of the usual calls of GET /products/{id}, and the others are blocked;
//   - retries: each payment fails, and clients retry it three times immediately.
var Incidents = []string{hang, lowLimit, retries}

const (
	hang     = "hang"
	lowLimit = "limit"
	retries  = "retries"
)

// incidentLength is the duration of an incident. DefaultAfter is the default time before it, which shows the usual
// numbers for comparison.
const (
	incidentLength = 30 * time.Second
	DefaultAfter   = time.Minute
)

// incident breaks the shop for incidentLength, from a whole second on. Without a name it does nothing. The handlers and
// the generator call active to find out whether they are affected.
//
// The handler of the database implements the incident hang. The handler of payments and the generator implement
// retries, and run implements limit. Times are from the wall clock, because the user compares them with the printed
// line.
type incident struct {
	// name is one of Incidents, or empty.
	name string
	// The incident includes the second of from and excludes the second of to.
	from, to time.Time
	over     chan struct{} // closed when the load ends, to release calls that hang
}

// active reports whether the incident with the name is in progress.
func (i *incident) active(name string) bool {
	t := time.Now()
	return i.name == name && !t.Before(i.from) && t.Before(i.to)
}

// sleep waits for d and returns true. It returns false as soon as end is closed.
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

// run waits until ctx ends, and then releases the calls that hang. In the incident limit, it first adds the low limit
// to the usual ones, and removes it at the end of the incident.
func (i *incident) run(ctx context.Context, c *collector.Collector, usual []collector.Limit, rate float64) {
	defer close(i.over)
	if i.name == lowLimit && sleep(time.Until(i.from), ctx.Done()) {
		const products = "GET /products/{id}"
		low := collector.Limit{Resource: products, Count: max(int64(rate*productsShare/4), 1)}
		// SetLimits replaces all limits, so the usual ones must be in the list, too.
		_ = c.SetLimits(append(slices.Clone(usual), low)) // the limits are valid
		sleep(time.Until(i.to), ctx.Done())
		_ = c.SetLimits(usual)
	}
	// Close over only when the load ends. Until then, calls that hang must wait for the end of the incident.
	<-ctx.Done()
}
