package limiter

import (
	"sync"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Shares bounds something that clients hold for as long as they like. Any client gets what it takes while less than the maximum is
// held, so one page of any size is served. Beyond that the host that holds the most gives way, but keeps two. It must
// be made with [NewShares] or [NewSeats], and is safe for concurrent use.
type Shares struct {
	max   int
	seats bool

	mu    sync.Mutex // guards what follows
	held  int
	table fairshare.Table[string, *share]
}

// share is what one client holds.
type share struct {
	n    int // 0 once it is given back
	stop func() error
}

// NewShares returns Shares of what honest clients hold for moments, such as a page that is being written. The oldest, which is the
// slowest, gives way to a new one: of the host that has the most, or where no host has more than two, of all.
func NewShares(most int) *Shares {
	s := &Shares{max: most}
	s.table.Kept = fairshare.Kept
	return s
}

// NewSeats returns Shares of what is worth the more the longer it is held, such as a place in a queue. The newest gives way,
// and only to a host that has less than its own.
func NewSeats(most int) *Shares {
	s := NewShares(most)
	s.seats, s.table.Newest = true, true
	return s
}

// Take takes n for a host, and returns the function that gives it back. It reports false if all is held, and nothing can be
// taken back. stop is called when it has to be given back; it must not wait, and is not called after give has returned. An error of
// stop means that it cannot be stopped.
func (s *Shares) Take(host string, n int, stop func() error) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held >= s.max {
		x := s.table.First()
		if x == nil || s.seats && s.table.Amount(x.Host) <= max(fairshare.Kept, 1+s.table.Amount(host)) {
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

// give gives a share back, once. Holds mu.
func (s *Shares) give(x *share) {
	s.held -= x.n
	x.n = 0
}

// Held returns how much is held.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
