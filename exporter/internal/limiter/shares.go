package limiter

import (
	"slices"
	"sync"
)

// Shares bounds something that clients hold for as long as they like. While there is room everybody gets some. When there is
// none, the host that has the most gives way, but keeps two. It is safe for concurrent use.
type Shares struct {
	// Max is how much there is.
	Max int
	// Quick is for what honest clients hold for moments, such as a page that is being written. There is room until Max is
	// exceeded, so one page of any size finds some, and then the oldest, which is the slowest, makes room for the new one:
	// of the host that has the most, or where no host has more than two, of all. Otherwise the newest goes, of another host
	// that has more, and if there is none, Take refuses.
	Quick bool

	mu    sync.Mutex // guards what follows
	held  int
	all   []*share // the oldest first
	hosts map[string]held
}

// share is what one client holds.
type share struct {
	host string
	n    int
	stop func() error // nil if it cannot be stopped
}

// held is what a host holds.
type held struct{ n, count int }

// kept is how many shares are left to a host.
const kept = 2

// Take takes n for a host, and returns the function that gives it back. It reports false if there is no room, and none can be
// made. stop is called when it has to be given back; it must not wait, and is not called after give has returned. An error of
// stop means that it cannot be stopped.
func (s *Shares) Take(host string, n int, stop func() error) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.room(n) {
		x := s.victim(host)
		if x == nil {
			return nil, false
		}
		if x.stop() != nil {
			x.stop = nil
			continue
		}
		s.remove(x)
	}
	x := &share{host, n, stop}
	s.all = append(s.all, x)
	if s.hosts == nil {
		s.hosts = map[string]held{}
	}
	s.held += n
	h := s.hosts[host]
	s.hosts[host] = held{h.n + n, h.count + 1}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(x)
	}, true
}

// Held returns how much is held, by how many clients.
func (s *Shares) Held() (n, clients int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, len(s.all)
}

func (s *Shares) room(n int) bool {
	if s.Quick {
		return s.held <= s.Max
	}
	return s.held+n <= s.Max
}

// victim returns what gives way to one more of a host, nil if nothing does. Holds mu.
func (s *Shares) victim(newcomer string) *share {
	most := 0 // who gives way has more
	if !s.Quick {
		most = 1 + s.hosts[newcomer].n
	}
	var oldest, x *share
	for _, each := range s.all {
		h := s.hosts[each.host]
		switch {
		case each.stop == nil:
			continue
		case h.count > kept && (h.n > most || h.n == most && x != nil && !s.Quick):
			x, most = each, h.n
		}
		if oldest == nil {
			oldest = each
		}
	}
	if x == nil && s.Quick {
		return oldest
	}
	return x
}

// remove gives a share back, once. Holds mu.
func (s *Shares) remove(x *share) {
	i := slices.Index(s.all, x)
	if i < 0 {
		return
	}
	s.all = slices.Delete(s.all, i, i+1)
	s.held -= x.n
	h := s.hosts[x.host]
	if s.hosts[x.host] = (held{h.n - x.n, h.count - 1}); h.count == 1 {
		delete(s.hosts, x.host)
	}
}
