package otlp

import (
	"hash/maphash"
	"time"
)

// seen remembers the spans that were counted in the last 90 seconds, to detect duplicates: a sender that got no
// response sends its spans again.
//
// The identity of a span consists of its trace ID, its span ID, its service and its kind. The IDs alone do not suffice:
// with Zipkin's propagation, the client and the server of a call share a span ID, and so do a producer and its
// consumer, or the proxy of a mesh and its service.
//
// Only a hash of 64 bits is stored, with a random seed for each process. Among four million spans, one new span in a
// million million is mistaken for a duplicate. There are three generations of 45 seconds, so a span is remembered for
// 90 to 135 seconds, in some 20 bytes.
type seen struct {
	// most is the maximum number of spans.
	most int
	seed maphash.Seed
	// begin is the start of generation 0.
	begin time.Time
	// youngest is the number of the current generation.
	youngest int
	// sets are the last generations, by their number modulo three.
	sets [3]map[uint64]struct{}
	// key is a buffer.
	key []byte
}

const generation = 45 * time.Second

func newSeen(most int, now time.Time) *seen {
	s := &seen{most: most, seed: maphash.MakeSeed(), begin: now}
	for i := range s.sets {
		s.sets[i] = map[uint64]struct{}{}
	}
	return s
}

// turn forgets the generations that are too old.
func (s *seen) turn(now time.Time) {
	// After a pause of several generations, all sets are replaced once. If the clock was set back, nothing is forgotten
	// until it has caught up.
	youngest := int(now.Sub(s.begin) / generation)
	for s.youngest = max(s.youngest, youngest-len(s.sets)); s.youngest < youngest; {
		before := len(s.sets[s.youngest%len(s.sets)])
		s.youngest++
		set := &s.sets[s.youngest%len(s.sets)]
		*set = nil
		// The next generation is likely as large as the previous one, so a map of the same size need not grow. Clearing
		// the old map instead would keep the memory of the largest generation.
		*set = make(map[uint64]struct{}, min(before, s.most-s.len()))
	}
}

// len returns the number of remembered spans.
func (s *seen) len() (n int) {
	for _, set := range s.sets {
		n += len(set)
	}
	return n
}

// fits reports whether n more spans can be remembered.
func (s *seen) fits(n int) bool { return s.len()+n <= s.most }

// hash returns the identity of a span.
func (s *seen) hash(x *span) uint64 {
	// The IDs have fixed lengths, see check, so the service at the end makes the text unambiguous.
	s.key = append(append(append(append(s.key[:0], x.trace...), x.id...), byte(x.kind)), x.service...)
	return maphash.Bytes(s.seed, s.key)
}

// has reports whether a span with the hash was added.
func (s *seen) has(hash uint64) bool {
	for _, set := range s.sets {
		if _, ok := set[hash]; ok {
			return true
		}
	}
	return false
}

// add remembers the span with the hash.
func (s *seen) add(hash uint64) { s.sets[s.youngest%len(s.sets)][hash] = struct{}{} }
