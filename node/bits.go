package node

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends numbers to its field b, bit by bit, the lowest bit first. Its methods take the bitWriter by value
// and return the changed one. The memory of b can therefore be on the stack.
type bitWriter struct {
	b    []byte
	bits uint64 // bits that are not yet in b
	n    uint   // number of these bits, less than 64
}

// put writes the n low bits of v. The other bits of v must be 0.
func (w bitWriter) put(v uint64, n uint) bitWriter {
	w.bits |= v << w.n
	if w.n += n; w.n >= 64 {
		w.b = binary.LittleEndian.AppendUint64(w.b, w.bits)
		w.n -= 64
		w.bits = v >> (n - w.n)
	}
	return w
}

// end appends the bits that are not yet in b, and returns all bytes.
func (w bitWriter) end() []byte {
	for ready, n := w.bits, int(w.n); n > 0; n -= 8 {
		w.b = append(w.b, byte(ready))
		ready >>= 8
	}
	return w.b
}

// spare is the number of readable bytes that must follow the data. A bitReader always loads eight bytes, even at the
// last byte of the data.
const spare = 8

// bitReader reads numbers that a bitWriter wrote. Numbers read after the end of the data are undefined.
type bitReader struct {
	b  []byte
	at uint // number of bits that were read
}

// readBits returns a bitReader of b. At least spare bytes must follow the data, within the capacity of b. The reader
// may load these bytes, but ignores their values.
func readBits(b []byte) bitReader { return bitReader{b: b[:cap(b)]} }

// next returns the next bits, at least 57 of them, and does not change the position of the reader.
func (r *bitReader) next() uint64 { return binary.LittleEndian.Uint64(r.b[r.at/8:]) >> (r.at % 8) }

// take reads n bits, at most 64.
func (r *bitReader) take(n uint) uint64 {
	if n > 57 {
		return r.take(32) | r.take(n-32)<<32
	}
	v := r.next() & (1<<n - 1)
	r.at += n
	return v
}

// Numbers are written in Rice code with a parameter k. The code of v has two parts. The first part is the quotient v>>k
// in unary: a one for each unit of the quotient, and a zero at the end. The second part is the k low bits of v. A
// quotient of 4 or more is written in Elias gamma code instead, so that even unexpectedly large numbers have short
// codes:
//
//	quotient   first part of the code
//	0          0
//	1          10
//	2          110
//	3          1110
//	4          11110
//	5, 6       111110 + 1 bit
//	7 to 10    1111110 + 2 bits
//	...        ...
//	escape     20 ones + 64 bits   v itself; there is no second part
//
// From quotient 4 on, each row of the table has twice as many quotients as the row before it, and its codes have one
// more 1 at the start and one more bit at the end.
const (
	unaryLimit = 4  // smallest quotient in Elias gamma code
	escapeOnes = 20 // number of ones in an escape, which precedes an unencoded v
	maxLowBits = 16 // largest k
)

// code writes v in Rice code with the parameter k, which is at most maxLowBits. A good k is the number of bits that
// most numbers have. If k is smaller, the first part of a code gets long. If k is larger, the second part contains
// leading zeros of v, which carry no information.
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

// longCode reads a number whose code starts with at least unaryLimit ones; the parameter ones is the number of these
// ones. If there are at least escapeOnes, the number follows unencoded in the 64 bits after the first escapeOnes bits.
// Otherwise a zero follows the ones, and the parameter next contains the bits after this zero.
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

// pairs is a table that decodes two numbers at a time, if both were written with the parameter kMost (see record.go).
// The next ten bits of the input are the index of a table entry. The entry holds the two numbers, and the total length
// of their codes in bits. If this length is 0, at least one of the two numbers is large, and the reader must decode
// them one by one.
//
// Most numbers of a record are written with kMost. Without the table, reading a minute of records takes a quarter
// longer.
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

// readEight reads eight numbers, two at a time. They must have been written with the parameter kMost. readEight costs
// less than eight calls of the method code.
func (r *bitReader) readEight() (list [8]uint64) {
	next := r.next() // at least 57 bits; the codes of four pairs have at most 40
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

// packCounts writes counts in Rice code with the parameter k; addCounts reads them. After a count of 0, packCounts
// writes the number of further zeros instead of these zeros. For example, it writes the counts 7, 0, 0, 0, 2 as 7, 0,
// 2, 2, where the first 2 means two further zeros.
//
// packCounts and addCounts handle short codes without calling the method code, and hold the pending bits in local
// variables. This saves a quarter of the time to pack a second and to read its histogram.
func (w bitWriter) packCounts(counts []int64, k uint) bitWriter {
	k &= 63
	b, ready, n := w.b, w.bits, w.n
	for i := 0; i < len(counts); i++ {
		v := uint64(counts[i])
		part := v >> k
		if v > 0 && part < unaryLimit { // a short code
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

// addCounts reads len(sums) counts that packCounts wrote with the same k, and adds them to sums.
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
			n = r.code(k) // the code is not short, so n was wrong: read it again
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

// putRemainder writes v, a number with exactly n significant bits. It leaves out the highest bit, which is always 1. It
// does not write n, so the reader must already know n.
func (w bitWriter) putRemainder(v uint64, n int) bitWriter {
	if n < 2 {
		return w
	}
	return w.put(v-1<<(n-1), uint(n-1))
}

// readRemainder reads a number that putRemainder wrote with the same n.
func (r *bitReader) readRemainder(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return 1<<(n-1) | r.take(uint(n-1))
}

// zigzag maps numbers near 0 to small unsigned numbers: 0, -1, 1, -2 and 2 become 0, 1, 2, 3 and 4.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// unzigzag is the inverse of zigzag.
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
