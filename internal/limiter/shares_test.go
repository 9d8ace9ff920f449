package limiter

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// TestEvictedShare checks which share is revoked when a new share is requested.
func TestEvictedShare(t *testing.T) {
	for _, tc := range []struct {
		name      string
		order     Order
		has, came string // the shares held, oldest first, and the new share; each letter is a host
		gone      string // the evicted share, as an index of has; - if none is evicted, x if the new share is refused
	}{
		{"free capacity", EvictNewest, "aaa", "a", "-"},
		{"a flood is refused", EvictNewest, "aaaa", "a", "x"},
		{"another host", EvictNewest, "aaaa", "b", "3"},
		{"a host with one share", EvictNewest, "aaab", "b", "2"},
		{"both have two", EvictNewest, "aabb", "b", "x"},
		{"each host has two", EvictNewest, "aabb", "c", "x"},
		{"each host has one", EvictNewest, "abcd", "e", "x"},
		{"free capacity, evicting the oldest", EvictOldest, "aaa", "a", "-"},
		{"the oldest of the flood, for itself", EvictOldest, "aaaa", "a", "0"},
		{"the oldest of the flood, for another host", EvictOldest, "aaaa", "b", "0"},
		{"a host with one share is spared", EvictOldest, "baaa", "b", "1"},
		{"each host has two: the oldest", EvictOldest, "baab", "c", "0"},
	} {
		s := NewShares(4, tc.order)
		gone := "-"
		for i, host := range tc.has {
			if _, ok := s.Take(string(host), 1, func() error { gone = string(rune('0' + i)); return nil }); !ok {
				t.Fatalf("%s: share %d was refused", tc.name, i)
			}
		}
		if _, ok := s.Take(tc.came, 1, nil); !ok {
			gone = "x"
		}
		if gone != tc.gone {
			t.Errorf("%s: evicted %s, want %s", tc.name, gone, tc.gone)
		}
	}
}

// A share whose stop fails is kept. A share larger than the maximum is granted if nothing is held.
func TestShareThatCannotBeStopped(t *testing.T) {
	s := NewShares(10, EvictOldest)
	give, ok := s.Take("a", 100, func() error { return errors.ErrUnsupported })
	if !ok {
		t.Fatal("a share above the maximum was refused although nothing is held")
	}
	for range 2 {
		if _, ok := s.Take("b", 1, nil); ok {
			t.Error("a share was granted although the holder of the maximum cannot be stopped")
		}
	}
	give()
	give()
	if n := s.Held(); n != 0 {
		t.Errorf("%d held, want 0", n)
	}
}

// Under random operations, the total stays below its bound. No share is stopped twice, or after it was returned. While
// another host has more than two shares, a host without shares gets one.
func TestSharesAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		s, largest := NewShares(20, EvictNewest), 1
		if seed%2 == 0 {
			s, largest = NewShares(20, EvictOldest), 9
		}
		type held struct {
			host string
			n    int
			give func()
		}
		holding := map[int]*held{}
		for i := range 300 {
			if random.IntN(4) == 0 {
				for k, x := range holding {
					x.give()
					x.give()
					delete(holding, k)
					break
				}
				continue
			}
			x := &held{host: string(rune('a' + random.IntN(1+random.IntN(6)))), n: 1 + random.IntN(largest)}
			byHost := map[string]int{}
			for _, y := range holding {
				byHost[y.host]++
			}
			rich := false
			for host, n := range byHost {
				rich = rich || host != x.host && n > fairshare.Kept
			}
			give, ok := s.Take(x.host, x.n, func() error {
				if holding[i] != x {
					t.Error("stopped twice, or after it was returned")
				}
				delete(holding, i)
				return nil
			})
			if !ok {
				if s.order == EvictOldest || byHost[x.host] == 0 && rich {
					t.Errorf("%s was refused while the hosts hold %v", x.host, byHost)
				}
				continue
			}
			x.give = give
			holding[i] = x
			sum := 0
			for _, y := range holding {
				sum += y.n
			}
			if n := s.Held(); n != sum || n >= 20+largest {
				t.Fatalf("%d held, want %d, fewer than %d", n, sum, 20+largest)
			}
		}
	}
}
