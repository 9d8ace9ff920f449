package live

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// budget bounds the time that is spent on the questions of each host, because a viewer may ask again at once: with a poll, or
// with the first message of a stream. A host that asks in a loop waits for its own budget, others do not, and one that asks each
// second does not notice. Time that was used cannot be given back, so a host never gives way to another one, and others only matter for which
// of them are remembered. The zero value is ready.
type budget struct {
	mu    sync.Mutex // guards hosts
	hosts fairshare.Table[string, *rate.Limiter]
}

const (
	// A host has a tenth of a processor, and what it did not use of the last ten seconds. All are in microseconds.
	perSecond = 100_000
	saved     = 1_000_000
	least     = 1000             // that a question costs
	maxWait   = 10 * time.Second // after which it is refused
)

// wait waits until a host may ask, and returns the function that says how long the answer took.
func (b *budget) wait(ctx context.Context, host string) (spent func(time.Duration), err error) {
	x := b.of(host)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := x.WaitN(ctx, least); err != nil { // at once, if it would take too long
		return nil, err
	}
	return func(d time.Duration) { x.ReserveN(time.Now(), min(max(0, int(d.Microseconds())-least), saved)) }, nil
}

// of returns what a host may ask. Hosts that have saved all they can are forgotten, those first that have not asked for the
// longest time.
func (b *budget) of(host string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	for x := b.hosts.First(); x != nil && x.Value.Tokens() >= saved; x = b.hosts.First() {
		b.hosts.Remove(x)
	}
	limiter := rate.NewLimiter(perSecond, saved)
	if x := b.hosts.FirstOf(host); x != nil {
		limiter = x.Value
		b.hosts.Remove(x)
	}
	b.hosts.Add(host, 1, limiter)
	return limiter
}
