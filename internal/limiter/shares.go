package limiter

import (
	"sync"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Shares bounds the total of something that clients hold, such as unread response bytes. While the total is below the
// maximum, Take grants a share of any size, so a page of any size can be served. At the maximum, Take revokes a share
// of the host that holds the most. It spares a host with at most two shares while another host has more. Create Shares
// with [NewShares]. It is safe for concurrent use.
type Shares struct {
	max   int
	order Order

	mu    sync.Mutex // guards the fields below
	held  int
	table fairshare.Table[string, *share]
}

// share is the part that one client holds.
type share struct {
	n    int // 0 after it was returned
	stop func() error
}

// Order is the order in which [Shares] revokes.
type Order int

const (
	// EvictOldest revokes the oldest share of the host that holds the most. If no host has more than two shares, it
	// revokes the oldest share of all hosts. It suits shares that honest clients hold briefly, such as a page that is
	// being written: the oldest share is the slowest.
	EvictOldest Order = iota
	// EvictNewest revokes the newest share, and only if its host holds more than the host that requests a share. It
	// suits shares that become more valuable the longer they are held, such as a position in a queue.
	EvictNewest
)

// NewShares returns Shares with the given maximum and order.
func NewShares(most int, order Order) *Shares {
	s := &Shares{max: most, order: order}
	s.table.Kept, s.table.Newest = fairshare.Kept, order == EvictNewest
	return s
}

// Take takes a share of n for a host. It returns the function give, which returns the share. ok is false if the maximum
// is reached and no share can be revoked. To revoke the share later, another Take calls stop. stop must not block, and
// is not called after give has returned. If stop returns an error, the holder cannot be stopped, and keeps the share.
func (s *Shares) Take(host string, n int, stop func() error) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held >= s.max {
		x := s.table.First()
		if x == nil || s.order == EvictNewest && s.table.Amount(x.Host) <= max(fairshare.Kept, 1+s.table.Amount(host)) {
			return nil, false
		}
		s.table.Remove(x)
		if x.Value.stop() == nil {
			s.give(x.Value)
		}
	}
	s.held += n
	x := s.table.Add(host, n, &share{n: n, stop: stop})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.table.Remove(x)
		s.give(x.Value)
	}, true
}

// give returns a share once. mu must be held.
func (s *Shares) give(x *share) {
	s.held -= x.n
	x.n = 0
}

// Held returns the total of all shares.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
