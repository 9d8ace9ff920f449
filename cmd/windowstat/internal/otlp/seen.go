package otlp

import (
	"hash/maphash"
	"time"
)

// seen are the spans of the last 90 seconds, so that one that comes again is known: a sender that had no answer sends it once more. A span is
// a hash of 64 bits of its two ids, made anew for each process: of 4 million that are remembered, one span in a million million is taken
// for another one.
//
// There are three generations of 45 seconds, so a span is known for 90 to 135 seconds, for some 20 bytes.
type seen struct {
	most     int // ids in all
	seed     maphash.Seed
	begin    time.Time // of generation 0
	youngest int
	sets     [3]map[uint64]struct{} // a generation has the one of its number, modulo three
}

const generation = 45 * time.Second

func newSeen(most int, now time.Time) *seen {
	s := &seen{most: most, seed: maphash.MakeSeed(), begin: now}
	for i := range s.sets {
		s.sets[i] = map[uint64]struct{}{}
	}
	return s
}

// turn forgets generations that are too old.
func (s *seen) turn(now time.Time) {
	youngest := int(now.Sub(s.begin) / generation)
	for s.youngest = max(s.youngest, youngest-len(s.sets)); s.youngest < youngest; {
		s.youngest++
		clear(s.sets[s.youngest%len(s.sets)]) // what it has grown to is needed again
	}
}

// fits reports whether so many spans more can be remembered.
func (s *seen) fits(n int) bool {
	for _, set := range s.sets {
		n += len(set)
	}
	return n <= s.most
}

// again reports whether a span has come before, and remembers it.
func (s *seen) again(x *span) bool {
	var id [24]byte
	copy(id[:], x.trace)
	copy(id[16:], x.id)
	h := maphash.Bytes(s.seed, id[:])
	for _, set := range s.sets {
		if _, ok := set[h]; ok {
			return true
		}
	}
	s.sets[s.youngest%len(s.sets)][h] = struct{}{}
	return false
}
