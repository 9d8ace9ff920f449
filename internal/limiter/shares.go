package limiter

import (
	"sync"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Shares bounds the total amount of a resource that clients hold, such as unread response bytes. Each client holds a
// share of it. While the total is below the maximum, Take grants a share of any size, so a page of any size can be
// served. At the maximum, Take first revokes a share of the host that holds the largest amount. It spares a host with
// at most two shares while another host has more than two. Create Shares with [NewShares]. It is safe for concurrent
// use.
type Shares struct {
	max   int
	order Order

	mu    sync.Mutex // guards the fields below
	held  int
	table fairshare.Table[string, *share]
}

// share is a granted share.
type share struct {
	n    int // size of the share; 0 after it was returned
	stop func() error
}

// Order is the order in which [Shares] revokes.
type Order int

const (
	// EvictOldest revokes the oldest share of the host that holds the largest amount. If no host has more than two
	// shares, it revokes the oldest share of all hosts. It suits shares that honest clients hold briefly, such as the
	// unread bytes of a page: the client with the oldest share is the slowest reader.
	EvictOldest Order = iota
	// EvictNewest revokes the newest share of the host that holds the largest amount, and only if this host holds more
	// than the host that requests a share. It suits shares that become more valuable the longer they are held, such as
	// a position in a queue.
	EvictNewest
)

// NewShares returns Shares with the maximum most and the given order.
func NewShares(most int, order Order) *Shares {
	s := &Shares{max: most, order: order}
	s.table.Kept, s.table.Newest = fairshare.Kept, order == EvictNewest
	return s
}

// Take grants a share of the size n to a host. The host's request must call the result give when it no longer needs the
// share. ok is false if the maximum is reached and no other share can be revoked. If another call of Take revokes the
// share later, it calls stop, which must end the use of the share. stop must not block, and is not called after give
// has returned. If stop returns an error, the share counts until the holder calls give.
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

// give subtracts a share from the total. A second call for the same share has no effect. mu must be held.
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
