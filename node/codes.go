package node

import (
	"cmp"
	"iter"
	"slices"
)

// Code is a number for the outcome of a call. The user of the package chooses which number means which outcome. The
// code 0 means that a call has no code. A service should use few different codes: for each completion with a code, a
// statistic searches a list of codes from its start.
type Code uint16

// codes counts completions by code, in the order of first use. The zero value is empty. The code of a call is counted
// together with the completion of the call, under the lock of the stripe. A reader that holds all stripe locks
// therefore sees each completion together with its code. A call without a code costs only a comparison.
//
// Counts by code are never moved to the history, unlike the other counts. They stay in the stripes, even after the
// statistic is retired.
type codes []codeCount

type codeCount struct {
	code Code
	n    int64
}

// add counts n calls with the given code. It is not inlined, because inlining would make calls without a code slower.
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
		*c = make(codes, 0, 4) // four entries fill a cache line, so two stripes do not write to the same line
	}
	*c = append(*c, codeCount{code, n})
}

// addCodes adds the completions in all stripes to sum, by code. Stripes count them from the beginning of s, not by
// bucket. They do not count completions without a code. All stripe locks must be held, or s must be retired.
func (s *Statistic) addCodes(sum *codes) {
	for st := range s.stripes {
		if st.completions != nil {
			for _, x := range st.completions.byCode {
				sum.add(x.code, x.n)
			}
		}
	}
}

// Codes holds the number of completions for each code, and the response times by code (see [Codes.Histograms]). The
// zero value is empty. A Codes is a copy, so calls that end later do not change it. [View.SnapshotByCode] fills a Codes
// and reuses its memory. A Codes is not safe for concurrent use.
type Codes struct {
	list       codes
	histograms []codeHistogram // response times by code of the leaves with SplitByCode
	inFlight   int64           // calls in flight of the leaves with SplitByCode
}

// All iterates over the codes in ascending order, and yields each code with its number of completions. After
// [View.SnapshotByCode] has filled c, the first code is always 0, with the completions that had no code. All
// completions add up to Total.Complete of the [Snapshot] that the same call of View.SnapshotByCode returned.
func (c *Codes) All() iter.Seq2[Code, int64] {
	return func(yield func(Code, int64) bool) {
		for _, x := range c.list {
			if !yield(x.code, x.n) {
				return
			}
		}
	}
}

// complete adds the entry for code 0, which counts the completions without a code. It then sorts the entries and the
// histograms by code. The parameter total is the number of all completions, with and without a code.
func (c *Codes) complete(total int64) {
	for _, x := range c.list {
		total -= x.n
	}
	// The parameter total stops at the largest int64, so it may be less than the sum of the entries.
	c.list = append(c.list, codeCount{n: max(total, 0)})
	slices.SortFunc(c.list, func(a, b codeCount) int { return cmp.Compare(a.code, b.code) })
	c.sortHistograms()
}
