package collector

import (
	"math"
	"slices"
	"sync"
)

// maxValues is the maximum number of values of a label, including [Other].
const maxValues = 16

// labelled is a label value with its data, for example a count.
type labelled[X any] struct {
	value string
	of    X
}

// getOrAdd returns the data of a value, and adds the value to the list if it is new. When the list is full, all further
// values share the data of [Other].
func getOrAdd[X any](list *[]labelled[X], value string) *X {
	value = cleanName(value, Unspecified)
	i := slices.IndexFunc(*list, func(x labelled[X]) bool { return x.value == value })
	switch {
	case i >= 0:
		return &(*list)[i].of
	case len(*list) >= maxValues-1 && value != Other:
		return getOrAdd(list, Other)
	}
	*list = append(*list, labelled[X]{value: value})
	return &(*list)[len(*list)-1].of
}

// counterVec holds one count for each value of a label. It counts blocks by reason and exceptions by class. These are
// rare events, so a lock and a linear search are fast enough, and use little memory. The zero value is empty and ready
// to use.
//
// Callers may pass any value, such as the text of an error. The first fifteen values have their own counts. All later
// values share the sixteenth value, [Other], so the number of series is bounded.
type counterVec struct {
	mu     sync.Mutex
	counts []labelled[int64]
}

func (v *counterVec) add(value string, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// If the sum overflows, set the count to the largest int64: a counter in a time series database must not fall.
	count := getOrAdd(&v.counts, value)
	if *count += n; *count < 0 {
		*count = math.MaxInt64
	}
}

// prune removes the values with the count 0. Resource.setLimits first calls prune, and then adds each limit in force
// with the count 0. A removed limit that has blocked nothing therefore disappears.
func (v *counterVec) prune() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts = filter(v.counts, func(x labelled[int64]) bool { return x.of > 0 })
}

// each passes all values with their counts to yield, in the order in which the values were added, until yield returns
// false. All counts are read at one instant. The result is true if there are any values.
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
