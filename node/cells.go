package node

import (
	"math/bits"
	"time"
)

// pageCells is the number of cells in a page.
const pageCells = 32

// completions holds the counts of a stripe by response time and by code. The tally of the stripe holds all other counts
// of ended calls.
type completions struct {
	cells[uint16]            // response times of the open second
	byCode        codes      // completions by code since the stripe was created
	times         *codeTimes // response times by code since the stripe was created; nil without SplitByCode
}

// cells counts response times by cell of a layout. A page is an array of small counters for 32 neighboring cells. A
// page is created when one of its cells first gets a count. The response times of a resource usually lie close
// together, so a few pages are enough:
//
//	layout   | cells 0 - 31 | 32 - 63 | 64 - 95 | 96 - 127 | ...
//	have     |      0       |    1    |    0    |     1    | ...      a bit for each page
//	pages                     pages[0]            pages[1]            32 counters each
//	spill                     (cell 40: 65,536 calls) -> (cell 99: ...) -> nil
//
// If an addition does not fit into the counter of a cell, the sum moves to a list of spilled counts, and the counter
// starts again from 0. The zero value of cells has no counts.
type cells[N uint16 | uint32] struct {
	have  uint64    // bit i is set if page i exists; a layout has fewer than 64 pages
	pages []page[N] // the existing pages, in ascending order of their cells
	spill *spill    // list of spilled counts
}

// page holds the counters of 32 neighboring cells. A page of uint16 fills a cache line.
type page[N uint16 | uint32] [pageCells]N

// spill is an element of the list of spilled counts. It holds a part of the count of one cell: calls that did not fit
// into the counter of this cell. The count of the cell is the sum of its counter and of n.
type spill struct {
	cell int
	n    int64
	next *spill
}

// count adds n to the count of a cell.
func (p *cells[N]) count(cell int, n int64) { p.countIn(p.ensurePage(cell/pageCells), cell, n) }

// countIn does the same as count, for a caller that has the page of the cell already. The parameter q is this page.
func (p *cells[N]) countIn(q *page[N], cell int, n int64) {
	at := &q[cell%pageCells]
	if sum := int64(*at) + n; sum >= 0 && sum <= int64(^N(0)) {
		*at = N(sum)
		return
	}
	p.overflow(at, cell, n)
}

// overflow adds n and the value of the counter to the spill of the given cell, and sets the counter to 0. The counter
// must belong to this cell. If the cell has no spill yet, overflow creates one.
func (p *cells[N]) overflow(counter *N, cell int, n int64) {
	s := p.spill
	for s != nil && s.cell != cell {
		s = s.next
	}
	if s == nil {
		s = &spill{cell: cell, next: p.spill}
		p.spill = s
	}
	s.n = saturate(saturate(s.n, int64(*counter)), n)
	*counter = 0
}

// ensurePage returns the page with this index, and creates the page if necessary. The pointer is valid until the next
// page is created.
func (p *cells[N]) ensurePage(index int) *page[N] {
	i := p.pagesBefore(index)
	if p.have>>index&1 == 0 {
		more := make([]page[N], len(p.pages)+1)
		copy(more, p.pages[:i])
		copy(more[i+1:], p.pages[i:])
		p.have, p.pages = p.have|1<<index, more
	}
	return &p.pages[i]
}

// pagesBefore returns the number of existing pages before the page with this index.
func (p *cells[N]) pagesBefore(index int) int { return bits.OnesCount64(p.have & (1<<index - 1)) }

// complete counts n calls with the response time rt, which lies in the given cell. The parameter failed reports whether
// they failed, and code is their code (0 for none). st.mu must be held.
func (st *stripe) complete(rt time.Duration, cell int, n int64, failed bool, code Code) {
	st.open.complete(rt, n, failed)
	if index := int16(cell / pageCells); st.page == nil || index != st.pageNo {
		st.usePage(index)
	}
	st.completions.countIn(st.page, cell, n)
	if code != 0 {
		st.completions.byCode.add(code, n)
	}
	if st.split {
		timesOf(&st.completions.times, code).add(rt, cell, n)
	}
}

// usePage stores the page with this index in st.page, and creates the page if necessary. As long as response times lie
// in this page, complete does not search for a page.
func (st *stripe) usePage(index int16) {
	if st.completions == nil {
		st.completions = new(completions)
	}
	st.page, st.pageNo = st.completions.ensurePage(int(index)), index
}

// reset sets all counts to 0 and keeps the memory of the pages.
func (p *cells[N]) reset() {
	clear(p.pages)
	p.spill = nil
}

// addTo adds all counts of p to the slice counts, whose first element is for the cell with the number firstCell.
func (p *cells[N]) addTo(counts []int64, firstCell int) {
	p.each(func(cell int, n int64) { counts[cell-firstCell] = saturate(counts[cell-firstCell], n) })
}

// The method each calls f for every cell with a count. If a cell has a spill, f may be called twice for this cell. Each
// of the two calls then gets a part of the count.
func (p *cells[N]) each(f func(cell int, n int64)) {
	for i, rest := 0, p.have; rest != 0; i, rest = i+1, rest&(rest-1) {
		index := bits.TrailingZeros64(rest)
		for c, n := range &p.pages[i] {
			if n != 0 { // counters after the last cell of the layout are always 0
				f(index*pageCells+c, int64(n))
			}
		}
	}
	for s := p.spill; s != nil; s = s.next {
		f(s.cell, s.n)
	}
}

// The histogram of a second is stored in history.histograms, separately from the record of the second. It consists of
// the counts of all cells from the cell of the shortest response time to the cell of the longest one. packCounts writes
// these counts in a Rice code that is short if the counts are about equal.

// packCells appends the packed response times of a second to b, and moves them from the stripes to the totals. The
// record of the second, rec, determines the first and the last cell by its RTMin and RTMax. mu and all stripe locks
// must be held.
func (s *Statistic) packCells(b []byte, rec *record) []byte {
	first, last, k := s.first.config.layout.cellRange(rec)
	var scratch [8 * pageCells]int64
	counts := zeros(scratch[:], last+1-first)
	for st := range s.stripes {
		if st.completions != nil {
			st.completions.addTo(counts, first)
			st.completions.reset()
		}
	}
	for i, n := range counts {
		if n != 0 {
			s.history.rt.count(first+i, n)
		}
	}
	return bitWriter{b: b}.packCounts(counts, k).end()
}

// addCells adds b, the packed histogram of a second, to counts, which has an element for each cell. The parameter rec
// is the record of the second. If b is empty, no histogram was kept, and addCells adds nothing.
func (l *layout) addCells(counts []int64, rec *record, b []byte) {
	if len(b) == 0 {
		return
	}
	in := readBits(b)
	first, last, k := l.cellRange(rec)
	in.addCounts(counts[first:last+1], k)
}

// cellRange returns the first and the last cell with counts in the second of rec, which must have completions. It also
// returns the Rice parameter k for these counts: one less than the number of bits of the average count, from 0 to
// maxLowBits.
func (l *layout) cellRange(rec *record) (first, last int, k uint) {
	first, last = l.cell(rec.RTMin), l.cell(rec.RTMax)
	return first, last, uint(min(max(bits.Len64(uint64(rec.Complete)/uint64(last-first+1))-1, 0), maxLowBits))
}
