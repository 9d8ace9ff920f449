package node

import (
	"encoding/binary"
	"math"
)

// pageCells is how many cells of a layout a page has.
const pageCells = 64

// ended is what the calls that ended left in a stripe, beside its tally.
type ended struct {
	cells       // of the open second
	codes codes // of all time
}

// pages is enough for every native boundary and every classic one.
const pages = (nativeMax - nativeMin + 2 + maxBounds + pageCells - 1) / pageCells

// cells counts response times by cell of the layout. Those of one resource lie close together, so one or two pages of
// 256 bytes are all that is needed. The zero value is empty.
type cells struct {
	page  [pages]*page
	spill []spill
}

type page [pageCells]uint32

// spill is what did not fit into a page's count, for its cell: after four billion response times, or for batches of
// as many.
type spill struct {
	cell int
	n    int64
}

func (p *cells) count(cell int, n int64) { p.countIn(p.open(cell/pageCells), cell, n) }

// countIn is count where the cell's page is known.
func (p *cells) countIn(q *page, cell int, n int64) {
	at := &q[cell%pageCells]
	if sum := int64(*at) + n; sum >= 0 && sum <= math.MaxUint32 {
		*at = uint32(sum)
		return
	}
	for i := range p.spill {
		if s := &p.spill[i]; s.cell == cell {
			s.n = saturate(s.n, n)
			return
		}
	}
	p.spill = append(p.spill, spill{cell, n})
}

// open returns a page, and makes it if need be.
func (p *cells) open(no int) *page {
	if p.page[no] == nil {
		p.page[no] = new(page)
	}
	return p.page[no]
}

// count counts n response times of one cell in the open second. Holds the stripe's lock.
func (st *stripe) count(cell int, n int64) {
	if no := int16(cell / pageCells); st.recent == nil || no != st.recentNo {
		st.turnTo(no)
	}
	st.rt.countIn(st.recent, cell, n)
}

// turnTo makes a page the recent one.
func (st *stripe) turnTo(no int16) {
	if st.rt == nil {
		st.rt = new(ended)
	}
	st.recent, st.recentNo = st.rt.open(int(no)), no
}

// eachCell calls f for every cell of the open second that is not empty, ascending, with its count over all stripes.
// Holds all stripes' locks.
func (s *Statistic) eachCell(f func(cell int, n int64)) {
	for no := range pages {
		if !s.hasPage(no) {
			continue
		}
		var sum [pageCells]int64
		for st := range s.stripes {
			if st.rt != nil {
				st.rt.addPage(no, &sum)
			}
		}
		for c, n := range sum {
			if n != 0 {
				f(no*pageCells+c, n)
			}
		}
	}
}

// hasPage reports whether any stripe has a page. Holds all stripes' locks.
func (s *Statistic) hasPage(no int) bool {
	for st := range s.stripes {
		if st.rt != nil && st.rt.page[no] != nil {
			return true
		}
	}
	return false
}

// addPage adds the counts of a page.
func (p *cells) addPage(no int, sum *[pageCells]int64) {
	q := p.page[no]
	if q == nil {
		return
	}
	for c, n := range q {
		sum[c] = saturate(sum[c], int64(n))
	}
	for _, s := range p.spill {
		if s.cell/pageCells == no {
			sum[s.cell%pageCells] = saturate(sum[s.cell%pageCells], s.n)
		}
	}
}

// reset empties the cells and keeps their memory.
func (p *cells) reset() {
	for _, q := range p.page {
		if q != nil {
			*q = page{}
		}
	}
	p.spill = nil
}

// addTo adds all counts to counts by cell.
func (p *cells) addTo(counts []int64) {
	p.each(func(cell int, n int64) { counts[cell] = saturate(counts[cell], n) })
}

// each calls f for every cell that is not empty; for one that spilled, twice.
func (p *cells) each(f func(cell int, n int64)) {
	for no, q := range p.page {
		if q == nil {
			continue
		}
		for c, n := range q {
			if n != 0 { // cells beyond the layout's last are never counted
				f(no*pageCells+c, int64(n))
			}
		}
	}
	for _, s := range p.spill {
		f(s.cell, s.n)
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
