package replay

import "math"

// order finds the parts of a log that are in order: a log that was put together of several goes back in time where another
// begins. Each part is a source of its own then.
type order struct {
	tolerance int64
	line      int64 // lines so far
	latest    int64
	before    int64 // the latest before the last leap forward
	leapt     int   // lines since that leap, witnesses at most
	behind    int   // consecutive lines that are late
	next      part  // begins with the first of these
	parts     []part
}

// part is where a part begins.
type part struct {
	line   int64 // how many lines are before it
	first  int64 // the earliest of its first lines
	latest int64 // and the latest
}

// maxParts is how many parts a log may have: a log that has more is not in order, and what is late there is late.
const maxParts = 256

// skip passes lines without a time.
func (o *order) skip(n int) { o.line += int64(n) }

// add adds a line.
func (o *order) add(stamp int64) {
	o.line++
	if stamp >= o.latest-o.tolerance || o.latest == 0 {
		if stamp > o.latest+o.tolerance {
			o.before, o.leapt = o.latest, 0
		}
		o.leapt = min(o.leapt+1, witnesses)
		o.latest, o.behind = max(o.latest, stamp), 0
		return
	}
	if o.behind++; o.behind == 1 {
		o.next = part{o.line - 1, stamp, stamp}
	}
	o.next.first, o.next.latest = min(o.next.first, stamp), max(o.next.latest, stamp)
	if o.behind < witnesses {
		return
	}
	// Where the line before has leapt and all others have not, it is an outlier, and this is no other part.
	if (o.leapt == witnesses || o.next.latest < o.before-o.tolerance) && len(o.parts) < maxParts {
		o.parts = append(o.parts, o.next)
	}
	o.latest, o.behind, o.leapt = o.next.latest, 0, witnesses
}

// split returns the sources of a log's parts, each with the lines up to the next.
func (o *order) split(s *source) []*source {
	all := []*source{s}
	for _, p := range o.parts {
		one := *s
		one.from, one.first, one.to = p.line, p.first, math.MaxInt64
		all[len(all)-1].to = p.line
		all = append(all, &one)
	}
	return all
}
