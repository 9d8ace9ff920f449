package limiter

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// Who gives way when there is no room, in the words of the hosts that came, the oldest first. A host that is refused is "x".
func TestWhoGivesWay(t *testing.T) {
	for _, tc := range []struct {
		name      string
		new       func(int) *Shares
		has, came string // a letter is a host
		gone      string // the index in has of what gives way; - for nothing, x for a refusal
	}{
		{"there is room", NewSeats, "aaa", "a", "-"},
		{"a flood waits for itself", NewSeats, "aaaa", "a", "x"},
		{"another host", NewSeats, "aaaa", "b", "3"},
		{"a host that has few", NewSeats, "aaab", "b", "2"},
		{"both have two", NewSeats, "aabb", "b", "x"},
		{"everybody has two", NewSeats, "aabb", "c", "x"},
		{"all have one", NewSeats, "abcd", "e", "x"},
		{"there is room, for moments", NewShares, "aaa", "a", "-"},
		{"the slowest of the flood, for itself", NewShares, "aaaa", "a", "0"},
		{"the slowest of the flood, for another", NewShares, "aaaa", "b", "0"},
		{"not a host that has two", NewShares, "baaa", "b", "1"},
		{"everybody has two: the slowest", NewShares, "baab", "c", "0"},
	} {
		s := tc.new(4)
		gone := "-"
		for i, host := range tc.has {
			if _, ok := s.Take(string(host), 1, func() error { gone = string(rune('0' + i)); return nil }); !ok {
				t.Fatalf("%s: no room for %d", tc.name, i)
			}
		}
		if _, ok := s.Take(tc.came, 1, nil); !ok {
			gone = "x"
		}
		if gone != tc.gone {
			t.Errorf("%s: %s gives way, want %s", tc.name, gone, tc.gone)
		}
	}
}

// What cannot be stopped stays, and what is large gets in where nothing is held.
func TestUnstoppable(t *testing.T) {
	s := NewShares(10)
	give, ok := s.Take("a", 100, func() error { return errors.ErrUnsupported })
	if !ok {
		t.Fatal("no room for one that is larger than all")
	}
	for range 2 {
		if _, ok := s.Take("b", 1, nil); ok {
			t.Error("there is room beside one that cannot be stopped")
		}
	}
	give()
	give()
	if n := s.Held(); n != 0 {
		t.Errorf("%d are held", n)
	}
}

// Whatever comes and goes, the bound holds, nothing is stopped twice or after it was given back, and a host with nothing gets in
// beside one that has more than two.
func TestSharesAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		s, largest := NewSeats(20), 1
		if seed%2 == 0 {
			s, largest = NewShares(20), 9
		}
		type holder struct {
			host string
			n    int
			give func()
		}
		holding := map[int]*holder{}
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
			x := &holder{host: string(rune('a' + random.IntN(1+random.IntN(6)))), n: 1 + random.IntN(largest)}
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
					t.Error("stopped twice, or after it was given back")
				}
				delete(holding, i)
				return nil
			})
			if !ok {
				if !s.seats || byHost[x.host] == 0 && rich {
					t.Errorf("%s is refused, and there are %v", x.host, byHost)
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
				t.Fatalf("%d are held, want %d, fewer than %d", n, sum, 20+largest)
			}
		}
	}
}
