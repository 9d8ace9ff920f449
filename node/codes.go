package node

import (
	"cmp"
	"iter"
	"slices"
)

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

// addAll adds the counts of o.
func (c *codes) addAll(o codes) {
	for _, x := range o {
		c.add(x.code, x.n)
	}
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
