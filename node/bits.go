package node

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends numbers to b, bit by bit, the lowest first. It is a value, so that b can be on the stack.
type bitWriter struct {
	b    []byte
	bits uint64 // those that are not in b yet
	n    uint   // how many, less than 64
}

// put writes the n low bits of v, which has no others.
func (w bitWriter) put(v uint64, n uint) bitWriter {
	w.bits |= v << w.n
	if w.n += n; w.n >= 64 {
		w.b = binary.LittleEndian.AppendUint64(w.b, w.bits)
		w.n -= 64
		w.bits = v >> (n - w.n)
	}
	return w
}

// end fills the last byte, and returns all.
func (w bitWriter) end() []byte {
	for ready, n := w.bits, int(w.n); n > 0; n -= 8 {
		w.b = append(w.b, byte(ready))
		ready >>= 8
	}
	return w.b
}

// spare is how many bytes there are behind what is read, at least, so that eight bytes can always be read at once.
const spare = 8

// bitReader reads what a bitWriter wrote. What it reads behind the end means nothing.
type bitReader struct {
	b  []byte
	at uint // bits that were read
}

// readBits reads b, and whatever is behind it in its memory.
func readBits(b []byte) bitReader { return bitReader{b: b[:cap(b)]} }

// next is the next 57 bits at least.
func (r *bitReader) next() uint64 { return binary.LittleEndian.Uint64(r.b[r.at/8:]) >> (r.at % 8) }

// take reads n bits, up to 64.
func (r *bitReader) take(n uint) uint64 {
	if n > 57 {
		return r.take(32) | r.take(n-32)<<32
	}
	v := r.next() & (1<<n - 1)
	r.at += n
	return v
}

// A number is written as the 1<<k-th part of it, and the k bits that this leaves. The part is as many ones as it is, if that
// is less than four, and a zero: Rice's code. Of more there are four ones, and one for each time that it doubles, and as many
// bits; so a number that is far from what was expected does not take long. After as many ones as there can be come 64 bits.
const (
	unaryLimit  = 4
	escapeOnes = 20
	maxLowBits = 16 // k
)

// code writes a number whose lowest k bits, at most 16, are about random.
func (w bitWriter) code(v uint64, k uint) bitWriter {
	part, low := v>>k, v&(1<<k-1)
	if part < unaryLimit {
		return w.put((1<<part-1)|low<<(part+1), uint(part)+1+k)
	}
	part -= unaryLimit - 1
	doubled := uint(bits.Len64(part)) - 1
	ones := unaryLimit + doubled
	if ones >= escapeOnes {
		return w.put(1<<escapeOnes-1, escapeOnes).put(v, 64)
	}
	return w.put(1<<ones-1, ones+1).put((part-1<<doubled)|low<<doubled, doubled+k)
}

// code reads a number that was written with the same k.
func (r *bitReader) code(k uint) uint64 {
	next := r.next()
	ones := uint(bits.TrailingZeros64(^next))
	next >>= (ones + 1) & 63
	if ones < unaryLimit {
		r.at += ones + 1 + k
		return uint64(ones)<<(k&63) | next&(1<<(k&63)-1)
	}
	return r.longCode(ones, next, k)
}

// much is code where there are more than a few ones, behind which is next.
func (r *bitReader) longCode(ones uint, next uint64, k uint) uint64 {
	if ones >= escapeOnes {
		r.at += escapeOnes
		return r.take(64)
	}
	doubled := ones - unaryLimit
	r.at += ones + 1 + doubled + k
	part := unaryLimit - 1 + 1<<doubled + next&(1<<doubled-1)
	return part<<k | next>>doubled&(1<<k-1)
}

// pairs are two numbers each, written with kMost, by the bits that they take at most if neither is far from what was expected. The
// others, which take 0 bits here, are read one by one. Most of a record is such numbers: without the table a minute of records
// takes a quarter longer to read.
var pairs = func() (all [1 << (2 * (unaryLimit + kMost))]struct{ first, second, bits uint8 }) {
	for i := range all {
		r := bitReader{b: binary.LittleEndian.AppendUint64(make([]byte, 0, 8+spare), uint64(i))[:8+spare]}
		first, second := r.code(kMost), r.code(kMost)
		if max(first, second)>>kMost < unaryLimit {
			all[i].first, all[i].second, all[i].bits = uint8(first), uint8(second), uint8(r.at)
		}
	}
	return all
}()

// eight reads eight numbers that were written with kMost, two at a time. It costs less than to read each.
func (r *bitReader) readEight() (list [8]uint64) {
	next := r.next() // more than four pairs take
	for i := 0; i < len(list); i += 2 {
		p := pairs[next%uint64(len(pairs))]
		if p.bits == 0 {
			list[i], list[i+1] = r.code(kMost), r.code(kMost)
			next = r.next()
			continue
		}
		list[i], list[i+1] = uint64(p.first), uint64(p.second)
		next >>= p.bits
		r.at += uint(p.bits)
	}
	return list
}

// codes writes counts, for addCodes to add: behind a 0 is how many more there are.
//
// What code does with most counts is written out here, and in addCodes, with what is pending in variables of its own: a second is
// packed, and its histogram read, in three quarters of the time that calls for each count take.
func (w bitWriter) packCounts(counts []int64, k uint) bitWriter {
	k &= 63
	b, ready, n := w.b, w.bits, w.n
	for i := 0; i < len(counts); i++ {
		v := uint64(counts[i])
		part := v >> k
		if v > 0 && part < unaryLimit { // as code does, at once
			if n >= 32 {
				b = binary.LittleEndian.AppendUint32(b, uint32(ready))
				ready, n = ready>>32, n-32
			}
			ready |= (1<<part - 1 | v&(1<<k-1)<<(part+1)) << (n & 63)
			n += uint(part) + 1 + k
			continue
		}
		w = bitWriter{b, ready, n}.code(v, k)
		if v == 0 {
			more := i + 1
			for more < len(counts) && counts[more] == 0 {
				more++
			}
			w = w.code(uint64(more-i-1), k)
			i = more - 1
		}
		b, ready, n = w.b, w.bits, w.n
	}
	return bitWriter{b, ready, n}
}

// addCodes adds numbers that were written with the same k to sums. Behind a 0 is how many more sums to leave out.
func (r *bitReader) addCounts(sums []int64, k uint) {
	k &= 63
	mask := uint64(1)<<k - 1
	at, next, left := r.at, r.next(), uint(57)
	for i := 0; i < len(sums); i++ {
		if left < unaryLimit+k {
			r.at = at
			next, left = r.next(), 57
		}
		ones := uint(bits.TrailingZeros64(^next))
		rest := next >> ((ones + 1) & 63)
		n := uint64(ones)<<k | rest&mask
		used := ones + 1 + k
		next >>= used & 63
		left -= used
		at += used
		if ones >= unaryLimit {
			r.at = at - used
			n = r.code(k) // with all of its bits
			at, left = r.at, 0
		}
		if n == 0 {
			r.at = at
			i += int(r.code(k))
			at, left = r.at, 0
			continue
		}
		sums[i] = saturate(sums[i], int64(n))
	}
	r.at = at
}

// putRest writes a number of n bits without the highest.
func (w bitWriter) putRemainder(v uint64, n int) bitWriter {
	if n < 2 {
		return w
	}
	return w.put(v-1<<(n-1), uint(n-1))
}

// takeRest reads a number of n bits whose highest is known.
func (r *bitReader) readRemainder(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return 1<<(n-1) | r.take(uint(n-1))
}

// fold makes a small number of one that is near 0 on either side; unfold makes it that again.
func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
