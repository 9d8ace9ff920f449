package live

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// budget limits the processor time that each host can use with requests, because a viewer can repeat a poll, or the
// first message of a stream, without a pause. A host that sends requests in a loop waits for its own budget; other
// hosts do not wait, and a host with a request per second never does. Used time cannot be taken back, so one host never
// takes the budget of another one, and the order of the table only determines the hosts that are dropped. The zero
// value is ready to use.
type budget struct {
	mu    sync.Mutex // guards hosts
	hosts fairshare.Table[string, *rate.Limiter]
}

// Each host may use a tenth of a processor, and saves the unused time of the last ten seconds. The token of its limiter
// is a microsecond.
const (
	budgetPerSecond = 100_000
	burst           = 1_000_000
	minCost         = 1000             // charged before a request is served
	maxWait         = 10 * time.Second // a request that would have to wait longer is refused
)

// wait waits until a host may send a request, and charges the minimum cost. It returns the limiter that the rest of the
// cost must be charged to. It fails immediately if the wait would take too long.
func (b *budget) wait(ctx context.Context, host string) (*rate.Limiter, error) {
	x := b.limiterOf(host)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return x, x.WaitN(ctx, minCost)
}

// limiterOf returns the limiter of a host. It also drops hosts whose limiter is full, because a new limiter would be
// equal. It starts with the host whose last request is the oldest, and stops at the first host that it keeps.
func (b *budget) limiterOf(host string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	for x := b.hosts.First(); x != nil && x.Value.Tokens() >= burst; x = b.hosts.First() {
		b.hosts.Remove(x)
	}
	limiter := rate.NewLimiter(budgetPerSecond, burst)
	if x := b.hosts.FirstOf(host); x != nil {
		limiter = x.Value
		b.hosts.Remove(x)
	}
	b.hosts.Add(host, 1, limiter)
	return limiter
}
