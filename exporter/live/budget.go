package live

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// budget bounds the time that is spent on the questions of each host, because a viewer may ask again at once: with a poll, or
// with the first message of a stream. A host that asks in a loop waits for itself, others do not, and who asks each second does
// not notice. The zero value is ready.
type budget struct {
	mu    sync.Mutex // guards hosts
	hosts map[string]*rate.Limiter
}

const (
	// A host has a tenth of a processor, and what it did not use of the last ten seconds. All are in microseconds.
	perSecond = 100_000
	saved     = 1_000_000
	least     = 1000             // that a question costs
	maxWait   = 10 * time.Second // after which it is refused
	swept     = 1000             // hosts: of more, those that have saved all they can are forgotten
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

func (b *budget) of(host string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.hosts[host]
	if x != nil {
		return x
	}
	if len(b.hosts) >= swept {
		for name, other := range b.hosts {
			if other.Tokens() >= saved {
				delete(b.hosts, name)
			}
		}
	}
	if b.hosts == nil {
		b.hosts = map[string]*rate.Limiter{}
	}
	x = rate.NewLimiter(perSecond, saved)
	b.hosts[host] = x
	return x
}
