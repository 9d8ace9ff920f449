package node

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"time"
)

// pageCells is how many cells of a layout a page has.
const pageCells = 32

// ended is what the calls that ended left in a stripe, beside its tally.
type completions struct {
	cells[uint16]       // of the open second
	byCode         codes // of all time
}

// cells counts response times by cell of the layout, on pages of small counts. Those of one resource lie close together, so few pages are
// all that is needed. The zero value is empty.
type cells[N uint16 | uint32] struct {
	have  uint64    // a bit for each page that there is; a layout has less than 64
	pages []page[N] // these, ascending
	spill *spill    // a list
}

type page[N uint16 | uint32] [pageCells]N

// spill is what a cell has beside its page's count, which begins anew each time that it is full.
type spill struct {
	cell int
	n    int64
	next *spill
}

func (p *cells[N]) count(cell int, n int64) { p.countIn(p.ensurePage(cell/pageCells), cell, n) }

// countIn is count where the cell's page is known.
func (p *cells[N]) countIn(q *page[N], cell int, n int64) {
	at := &q[cell%pageCells]
	if sum := int64(*at) + n; sum >= 0 && sum <= int64(^N(0)) {
		*at = N(sum)
		return
	}
	p.overflow(at, cell, n)
}

// overflow moves the count of a cell, and n more, to its spill.
func (p *cells[N]) overflow(at *N, cell int, n int64) {
	s := p.spill
	for s != nil && s.cell != cell {
		s = s.next
	}
	if s == nil {
		s = &spill{cell: cell, next: p.spill}
		p.spill = s
	}
	s.n = saturate(saturate(s.n, int64(*at)), n)
	*at = 0
}

// open returns a page, and makes it if need be. It is valid until another one is made.
func (p *cells[N]) ensurePage(no int) *page[N] {
	i := p.pagesBefore(no)
	if p.have>>no&1 == 0 {
		more := make([]page[N], len(p.pages)+1)
		copy(more, p.pages[:i])
		copy(more[i+1:], p.pages[i:])
		p.have, p.pages = p.have|1<<no, more
	}
	return &p.pages[i]
}

// index is how many pages there are before one.
func (p *cells[N]) pagesBefore(no int) int { return bits.OnesCount64(p.have & (1<<no - 1)) }

// complete counts n calls that took rt each, which is in that cell, failed or not, with a code, of which 0 is none. Holds mu.
func (st *stripe) complete(rt time.Duration, cell int, n int64, failed bool, code Code) {
	st.open.complete(rt, n, failed)
	if no := int16(cell / pageCells); st.page == nil || no != st.pageNo {
		st.usePage(no)
	}
	st.completions.countIn(st.page, cell, n)
	if code != 0 {
		st.completions.byCode.add(code, n)
	}
}

// turnTo makes a page the recent one.
func (st *stripe) usePage(no int16) {
	if st.completions == nil {
		st.completions = new(completions)
	}
	st.page, st.pageNo = st.completions.ensurePage(int(no)), no
}

// reset empties the cells and keeps their memory.
func (p *cells[N]) reset() {
	clear(p.pages)
	p.spill = nil
}

// addTo adds all counts to counts by cell, the first of which is that of the cell from.
func (p *cells[N]) addTo(counts []int64, from int) {
	p.each(func(cell int, n int64) { counts[cell-from] = saturate(counts[cell-from], n) })
}

// each calls f for every cell that is not empty; for one that spilled, twice.
func (p *cells[N]) each(f func(cell int, n int64)) {
	for i, rest := 0, p.have; rest != 0; i, rest = i+1, rest&(rest-1) {
		no := bits.TrailingZeros64(rest)
		for c, n := range &p.pages[i] {
			if n != 0 { // cells beyond the layout's last are never counted
				f(no*pageCells+c, int64(n))
			}
		}
	}
	for s := p.spill; s != nil; s = s.next {
		f(s.cell, s.n)
	}
}

// A histogram of one second is kept beside its record, as the count of each cell from that of the shortest response time to that of the longest,
// each expected to be about as high as if all were the same. A count of 0 is followed by how many more there are.

// takeCells packs the response times that the stripes hold, of the second of rec, and moves them from the stripes to those of
// all seconds. The shortest and the longest one are in rec, and tell between which cells all of them are. Holds all stripes' locks.
func (s *Statistic) packCells(b []byte, rec *record) []byte {
	first, last, k := s.first.shape.layout.cellRange(rec)
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

// addCells adds a histogram that was kept so to counts by cell. One that is not kept has no bytes.
func (l *layout) addCells(counts []int64, rec *record, b []byte) {
	if len(b) == 0 {
		return
	}
	in := readBits(b)
	first, last, k := l.cellRange(rec)
	in.addCounts(counts[first:last+1], k)
}

// span is the first and the last cell that are not empty in the second of a record that has completions, and how many bits
// their counts have, more or less.
func (l *layout) cellRange(rec *record) (first, last int, k uint) {
	first, last = l.cell(rec.RTMin), l.cell(rec.RTMax)
	return first, last, uint(min(max(bits.Len64(uint64(rec.Complete)/uint64(last-first+1))-1, 0), maxLowBits))
}

// Code says how a call was answered, as its owner numbers answers. 0 is no code. There should be few: those of a statistic are
// looked through one by one.
type Code uint16

// codes counts the calls that ended with a code, in the order in which the codes came. The zero value is empty. Unlike counts
// of seconds they are never cut: those of a statistic stay in its stripes.
type codes []codeCount

type codeCount struct {
	code Code
	n    int64
}

// add counts n calls. It stays out of the way of calls without a code.
//
//go:noinline
func (c *codes) add(code Code, n int64) {
	for i := range *c {
		if x := &(*c)[i]; x.code == code {
			x.n = saturate(x.n, n)
			return
		}
	}
	if *c == nil {
		*c = make(codes, 0, 4) // a cache line, which no other stripe's share
	}
	*c = append(*c, codeCount{code, n})
}

// Codes is how many calls ended with each code. The zero value is empty. It is a copy, and keeps its memory when it is used for
// reading again. It is not safe for concurrent use.
type Codes struct{ list codes }

// All iterates over the codes, ascending. The first is always 0, with the calls that ended without a code; together they are
// [Counts].Complete of the [Snapshot] that was read with them.
func (c *Codes) All() iter.Seq2[Code, int64] {
	return func(yield func(Code, int64) bool) {
		for _, x := range c.list {
			if !yield(x.code, x.n) {
				return
			}
		}
	}
}

// complete makes those of all calls that have no code the first, and sorts the others.
func (c *Codes) complete(all int64) {
	for _, x := range c.list {
		all -= x.n
	}
	c.list = append(c.list, codeCount{n: max(all, 0)}) // less than nothing only where counts have stopped growing
	slices.SortFunc(c.list, func(a, b codeCount) int { return cmp.Compare(a.code, b.code) })
}
