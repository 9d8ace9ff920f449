package limiter

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// Who gives way when there is no room, in the words of the hosts that came, the oldest first. A host that is refused is "".
func TestWhoGivesWay(t *testing.T) {
	for _, tc := range []struct {
		name      string
		quick     bool
		has, came string // a letter is a host
		gone      string // the index in has of what gives way; - for nothing, x for a refusal
	}{
		{"there is room", false, "aaa", "a", "-"},
		{"a flood waits for itself", false, "aaaa", "a", "x"},
		{"another host", false, "aaaa", "b", "3"},
		{"a host that has few", false, "aaab", "b", "2"},
		{"both have two", false, "aabb", "b", "x"},
		{"everybody has two", false, "aabb", "c", "x"},
		{"all have one", false, "abcd", "e", "x"},
		{"there is room, for moments", true, "aaa", "a", "-"},
		{"the slowest of the flood, for itself", true, "aaaa", "a", "0"},
		{"the slowest of the flood, for another", true, "aaaa", "b", "0"},
		{"not a host that has two", true, "baaa", "b", "1"},
		{"everybody has two: the slowest", true, "baab", "c", "0"},
	} {
		max := 4
		if tc.quick {
			max = 3 // and one more
		}
		s := Shares{Max: max, Quick: tc.quick}
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
	s := Shares{Max: 10, Quick: true}
	give, ok := s.Take("a", 100, func() error { return errors.ErrUnsupported })
	if !ok {
		t.Fatal("no room for one that is larger than all")
	}
	if _, ok := s.Take("b", 1, nil); ok {
		t.Error("there is room beside one that cannot be stopped")
	}
	give()
	give()
	if n, clients := s.Held(); n != 0 || clients != 0 {
		t.Errorf("%d held by %d", n, clients)
	}
}

// Whatever comes and goes, the bound holds, nothing is stopped twice or after it was given back, and a host with nothing gets in
// beside one that has more than two.
func TestSharesAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := Shares{Max: 20, Quick: seed%2 == 0}
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
			x := &holder{host: string(rune('a' + random.IntN(1+random.IntN(6)))), n: 1}
			if s.Quick {
				x.n = 1 + random.IntN(9)
			}
			byHost := map[string]int{}
			for _, y := range holding {
				byHost[y.host]++
			}
			rich := false
			for host, n := range byHost {
				rich = rich || host != x.host && n > kept
			}
			give, ok := s.Take(x.host, x.n, func() error {
				if holding[i] != x {
					t.Error("stopped twice, or after it was given back")
				}
				delete(holding, i)
				return nil
			})
			if !ok {
				if s.Quick || byHost[x.host] == 0 && rich {
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
			bound := s.Max
			if s.Quick {
				bound += 9
			}
			if n, clients := s.Held(); n != sum || clients != len(holding) || n > bound {
				t.Fatalf("%d held by %d, want %d by %d, at most %d", n, clients, sum, len(holding), bound)
			}
		}
	}
}
