package collector

import (
	"math"
	"slices"
	"sync"
)

// maxValues is how many different values of its label a counterVec keeps apart.
const maxValues = 16

// counterVec counts by the value of a label: a few values, and [Other] for all further ones. Its zero value is empty.
type counterVec struct {
	mu     sync.Mutex
	values []string
	counts []int64
}

func (v *counterVec) add(value string, n int64) {
	value = cleanName(value, Unspecified)
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.index(value) // before counts is read: it may replace it
	if v.counts[i] += n; v.counts[i] < 0 {
		v.counts[i] = math.MaxInt64
	}
}

// index finds the counter of a value, and makes it if need be. Holds mu.
func (v *counterVec) index(value string) int {
	if i := slices.Index(v.values, value); i >= 0 {
		return i
	}
	if len(v.values) >= maxValues-1 && value != Other {
		return v.index(Other)
	}
	v.values, v.counts = append(v.values, value), append(v.counts, 0)
	return len(v.values) - 1
}

// prune forgets the values that were never counted.
func (v *counterVec) prune() {
	v.mu.Lock()
	defer v.mu.Unlock()
	var values []string
	var counts []int64
	for i, value := range v.values {
		if v.counts[i] > 0 {
			values, counts = append(values, value), append(counts, v.counts[i])
		}
	}
	v.values, v.counts = values, counts
}

// each calls yield for the values, in the order in which they came, with their counts as of one moment, until it returns
// false. It reports whether there are any values.
func (v *counterVec) each(yield func(string, int64) bool) bool {
	var counts [maxValues]int64
	v.mu.Lock()
	values := v.values[:len(v.values):len(v.values)]
	copy(counts[:], v.counts)
	v.mu.Unlock()
	for i, value := range values {
		if !yield(value, counts[i]) {
			break
		}
	}
	return len(values) > 0
}
