package node

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// codeTimes counts the response times of the calls that ended with one code. Each stripe has a list of codeTimes, one
// for each code, in the order of first use. Like the type codes, the list covers all calls since the stripe was
// created, stays in the stripe, and is guarded by the lock of the stripe. The struct fills a cache line, so two stripes
// do not write to the same line.
type codeTimes struct {
	cells[uint32]
	code Code
	sum  time.Duration
	next *codeTimes
}

// SplitByCode makes s count response times by code; see [Codes.Histograms]. Calls without a code count for code 0. The
// caller must call SplitByCode before s records anything. A completion then costs a few nanoseconds more, and each code
// takes half a kilobyte in each stripe.
func (s *Statistic) SplitByCode() { s.first.split = true }

// timesOf returns the element of list for the given code. If list has no such element, timesOf appends it.
func timesOf(list **codeTimes, code Code) *codeTimes {
	for *list != nil {
		if (*list).code == code {
			return *list
		}
		list = &(*list).next
	}
	*list = &codeTimes{code: code}
	return *list
}

// add counts n calls with the response time rt. The parameter cell is the cell of rt.
func (t *codeTimes) add(rt time.Duration, cell int, n int64) {
	t.count(cell, n)
	t.sum = time.Duration(saturate(int64(t.sum), times(int64(rt), n)))
}

// addTimes adds the response times in list to the response times in sum, code by code.
func addTimes(sum **codeTimes, list *codeTimes) {
	for t := list; t != nil; t = t.next {
		x := timesOf(sum, t.code)
		t.each(x.count)
		x.sum = time.Duration(saturate(int64(x.sum), int64(t.sum)))
	}
}

// timesByCode iterates over the stripes, and yields the list of response times by code of each stripe. It skips stripes
// without such a list. All stripe locks must be held, or s must be retired.
func (s *Statistic) timesByCode(yield func(*codeTimes) bool) {
	for st := range s.stripes {
		if st.completions != nil && st.completions.times != nil && !yield(st.completions.times) {
			return
		}
	}
}

// bytes returns the memory of the list that starts with t, in bytes.
func (t *codeTimes) bytes() (n int64) {
	for ; t != nil; t = t.next {
		n += codeTimesBytes + t.cells.bytes()
	}
	return n
}

// codeHistogram holds the response times of the calls that ended with one code.
type codeHistogram struct {
	code Code
	Histogram
}

// Histograms iterates over the codes in ascending order. For each code it yields the histogram of the response times of
// the calls that ended with this code since the view began. The histograms include only the leaves with
// [Statistic.SplitByCode]. Code 0 is included only if a call ended without a code. A Histogram is valid until
// [View.SnapshotByCode] fills c again. [Histogram.Quantile] is undefined for these histograms, because the shortest and
// the longest response time are not counted by code.
func (c *Codes) Histograms() iter.Seq2[Code, *Histogram] {
	return func(yield func(Code, *Histogram) bool) {
		for i := range c.histograms {
			if x := &c.histograms[i]; !yield(x.code, &x.Histogram) {
				return
			}
		}
	}
}

// InFlight returns the number of calls in flight of the leaves with [Statistic.SplitByCode].
func (c *Codes) InFlight() int64 { return c.inFlight }

// reset empties c and keeps its memory.
func (c *Codes) reset() { c.list, c.histograms, c.inFlight = c.list[:0], c.histograms[:0], 0 }

// addTimes adds the response times in list to the histograms of c. The cells in list and in the histograms have the
// layout l.
func (c *Codes) addTimes(l *layout, list *codeTimes) {
	for t := list; t != nil; t = t.next {
		h := c.histogram(l, t.code)
		t.each(func(cell int, n int64) {
			h.cells[cell] = saturate(h.cells[cell], n)
			h.count = saturate(h.count, n)
			h.from, h.to = min(h.from, cell), max(h.to, cell+1)
		})
		h.sum = time.Duration(saturate(int64(h.sum), int64(t.sum)))
	}
}

// histogram returns the histogram of the given code. If c has no such histogram, the method adds an empty one with the
// layout l.
func (c *Codes) histogram(l *layout, code Code) *Histogram {
	for i := range c.histograms {
		if x := &c.histograms[i]; x.code == code {
			return &x.Histogram
		}
	}
	if n := len(c.histograms); n < cap(c.histograms) {
		c.histograms = c.histograms[:n+1] // reuses the memory of an earlier histogram
	} else {
		c.histograms = append(c.histograms, codeHistogram{})
	}
	x := &c.histograms[len(c.histograms)-1]
	x.code = code
	x.Histogram.reset(l)
	x.from = len(l.upper)
	return &x.Histogram
}

// sortHistograms sorts the histograms by code.
func (c *Codes) sortHistograms() {
	slices.SortFunc(c.histograms, func(a, b codeHistogram) int { return cmp.Compare(a.code, b.code) })
}
