package node

import (
	"cmp"
	"iter"
	"slices"
)

// Code is the outcome of a call, in a numbering of the caller's choice. 0 means no code. A service should use few
// different codes, because a statistic searches them one by one.
type Code uint16

// codes counts completions by code, in the order of first use. The zero value is empty. Codes are counted under the
// lock of the stripe, together with the completion, so a reader that holds all stripe locks sees each completion with
// its code. Unlike the counts of a second, counts by code are never moved to the history. They stay in the stripes,
// even after the statistic is retired. A call without a code costs a comparison.
type codes []codeCount

type codeCount struct {
	code Code
	n    int64
}

// add counts n calls. Inlining is disabled, because calls without a code must not pay for add.
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
		*c = make(codes, 0, 4) // a whole cache line, not shared with another stripe
	}
	*c = append(*c, codeCount{code, n})
}

// addCodes adds the completions by code since s began. All stripe locks must be held.
func (s *Statistic) addCodes(to *codes) {
	for st := range s.stripes {
		if st.completions != nil {
			for _, x := range st.completions.byCode {
				to.add(x.code, x.n)
			}
		}
	}
}

// Codes holds the number of completions by code. The zero value is empty. Codes is a copy that later calls do not
// change. [View.SnapshotByCode] reuses the memory of the Codes that it sets. Concurrent use is not safe.
type Codes struct{ list codes }

// All iterates over the codes, ascending. The first code is always 0, for calls that ended without a code. The sum is
// [Counts].Complete of the [Snapshot] that was read at the same time.
func (c *Codes) All() iter.Seq2[Code, int64] {
	return func(yield func(Code, int64) bool) {
		for _, x := range c.list {
			if !yield(x.code, x.n) {
				return
			}
		}
	}
}

// complete adds the entry for code 0 (calls without a code), and sorts the entries by code. all is the number of
// completions.
func (c *Codes) complete(all int64) {
	for _, x := range c.list {
		all -= x.n
	}
	c.list = append(c.list, codeCount{n: max(all, 0)}) // negative only if Complete has reached its maximum
	slices.SortFunc(c.list, func(a, b codeCount) int { return cmp.Compare(a.code, b.code) })
}
