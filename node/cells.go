package node

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// pageCells is how many cells of a [Layout] a page has: one for each bit of its map.
const pageCells = 64

// pages is enough for every native boundary and every classic one.
const pages = (nativeMax - nativeMin + 2 + maxBounds + pageCells - 1) / pageCells

// cells counts the response times of one second in one stripe, by cell of the layout. Response times of one resource
// lie close together, so one or two pages of 264 bytes are all that is needed.
type cells struct {
	page  [pages]*page
	spill []spill
}

type page struct {
	used  uint64 // bit c is set where cell c is not empty
	count [pageCells]uint32
}

// spill is what did not fit into a page's count: only batches of billions get here.
type spill struct {
	cell int
	n    int64
}

func (p *cells) count(cell int, n int64) {
	q := p.page[cell/pageCells]
	if q == nil {
		q = new(page)
		p.page[cell/pageCells] = q
	}
	c := cell % pageCells
	q.used |= 1 << c
	if sum := int64(q.count[c]) + n; sum >= 0 && sum <= math.MaxUint32 {
		q.count[c] = uint32(sum)
	} else {
		p.spill = append(p.spill, spill{cell, n})
	}
}

// eachCell calls f for every cell of the open second that is not empty, ascending, with its count over all stripes.
// Holds all stripes' locks.
func (s *Statistic) eachCell(f func(cell int, n int64)) {
	for i := range pages {
		var used uint64
		for st := range s.stripes {
			if st.rt != nil && st.rt.page[i] != nil {
				used |= st.rt.page[i].used
			}
		}
		for ; used != 0; used &= used - 1 {
			c := bits.TrailingZeros64(used)
			var n int64
			for st := range s.stripes {
				if st.rt != nil && st.rt.page[i] != nil {
					n = saturate(n, st.rt.get(i, c))
				}
			}
			f(i*pageCells+c, n)
		}
	}
}

// get is the count of cell c of page i, which exists.
func (p *cells) get(i, c int) int64 {
	n := int64(p.page[i].count[c])
	for _, s := range p.spill {
		if s.cell == i*pageCells+c {
			n = saturate(n, s.n)
		}
	}
	return n
}

// reset empties the cells and keeps their memory.
func (p *cells) reset() {
	for _, q := range p.page {
		if q != nil && q.used != 0 {
			*q = page{}
		}
	}
	p.spill = nil
}

// totals counts the response times since the beginning, by cell.
type totals [pages]*[pageCells]int64

func (t *totals) count(cell int, n int64) {
	q := t[cell/pageCells]
	if q == nil {
		q = new([pageCells]int64)
		t[cell/pageCells] = q
	}
	c := cell % pageCells
	q[c] = saturate(q[c], n)
}

func (t *totals) addTo(counts []int64) {
	for i, q := range t {
		if q == nil {
			continue
		}
		for c, n := range q {
			if n != 0 {
				counts[i*pageCells+c] = saturate(counts[i*pageCells+c], n)
			}
		}
	}
}

// A histogram of one second is kept as a byte for each cell that is not empty: in the high half the distance from
// the cell before less one, in the low half the count less one. A half that is full is followed by a varint of what
// is left.
const full = 15

func appendCell(b []byte, distance int, n int64) []byte {
	d, m := uint64(distance-1), uint64(n-1)
	b = append(b, byte(min(d, full)<<4|min(m, full)))
	if d >= full {
		b = binary.AppendUvarint(b, d-full)
	}
	if m >= full {
		b = binary.AppendUvarint(b, m-full)
	}
	return b
}

// addCells adds a histogram that was kept so to counts by cell.
func addCells(counts []int64, b []byte) {
	cell := -1
	for len(b) > 0 {
		d, m := uint64(b[0]>>4), uint64(b[0]&full)
		b = b[1:]
		if d == full {
			rest, size := binary.Uvarint(b)
			d, b = d+rest, b[size:]
		}
		if m == full {
			rest, size := binary.Uvarint(b)
			m, b = m+rest, b[size:]
		}
		cell += int(d) + 1
		counts[cell] = saturate(counts[cell], int64(m)+1)
	}
}
