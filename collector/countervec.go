package collector

import (
	"math"
	"slices"
	"sync"
)

// maxValues is how many different values of a label are kept apart.
const maxValues = 16

// labelled is what is kept for a value of a label.
type labelled[X any] struct {
	value string
	of    X
}

// find finds what a list has for a value, and adds it if need be: for a few values, and for [Other] in the place of all further ones.
func find[X any](list *[]labelled[X], value string) *X {
	value = cleanName(value, Unspecified)
	i := slices.IndexFunc(*list, func(x labelled[X]) bool { return x.value == value })
	switch {
	case i >= 0:
		return &(*list)[i].of
	case len(*list) >= maxValues-1 && value != Other:
		return find(list, Other)
	}
	*list = append(*list, labelled[X]{value: value})
	return &(*list)[len(*list)-1].of
}

// counterVec counts by the value of a label. Its zero value is empty.
type counterVec struct {
	mu     sync.Mutex
	counts []labelled[int64]
}

func (v *counterVec) add(value string, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	count := find(&v.counts, value)
	if *count += n; *count < 0 {
		*count = math.MaxInt64
	}
}

// prune forgets the values that were never counted.
func (v *counterVec) prune() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts = filter(v.counts, func(x labelled[int64]) bool { return x.of > 0 })
}

// each calls yield for the values, in the order in which they came, with their counts as of one moment, until it returns
// false. It reports whether there are any values.
func (v *counterVec) each(yield func(string, int64) bool) bool {
	var counts [maxValues]labelled[int64]
	v.mu.Lock()
	n := copy(counts[:], v.counts)
	v.mu.Unlock()
	for _, x := range counts[:n] {
		if !yield(x.value, x.of) {
			break
		}
	}
	return n > 0
}
