package node

import (
	"math"
	"slices"
)

// peak is the highest slide of the records from a second on. It is kept while records are added, and found again when the second
// that has it is not asked for any more.
type peak struct {
	passes int64
	second int64 // the last that has it
	from   int64
}

// add takes the slides of the next record.
func (p *peak) add(second int64, slides []int64) {
	if passes := slices.Max(slides); passes >= p.passes {
		p.passes, p.second = passes, second
	}
}

// peakOf is the highest slide of the records in the minute window of the seconds from from to before to. Holds mu.
func (s *Statistic) peakOf(from, to int64) int64 {
	r := s.rings
	if r == nil {
		return 0
	}
	kept := r.minute.last < to
	if kept && r.peak.from <= from && from <= r.peak.second {
		return r.peak.passes
	}
	p := peak{from: from, second: math.MaxInt64} // if there are no records
	var room [64]int64
	r.minute.each(from, to, func(i int64, b []byte) bool {
		slides := counters(room[:], int(s.first.shape.perSec))
		addSlides(b, slides)
		p.add(i, slides)
		return true
	})
	if kept {
		r.peak = p
	}
	return p.passes
}
