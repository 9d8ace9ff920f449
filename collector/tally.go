package collector

import (
	"math"
	"slices"
	"sync"
)

// maxWords is how many different words a tally keeps apart.
const maxWords = 16

// tally counts by word: a few words, and [Other] for all further ones. Its zero value is empty.
type tally struct {
	mu     sync.Mutex
	words  []string
	counts []int64
}

func (t *tally) add(word string, n int64) {
	word = cleanName(word, Unspecified)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(word) // before counts is read: it may replace it
	if t.counts[i] += n; t.counts[i] < 0 {
		t.counts[i] = math.MaxInt64
	}
}

// index finds a word's place, and makes it. Holds mu.
func (t *tally) index(word string) int {
	if i := slices.Index(t.words, word); i >= 0 {
		return i
	}
	if len(t.words) >= maxWords-1 && word != Other {
		return t.index(Other)
	}
	t.words, t.counts = append(t.words, word), append(t.counts, 0)
	return len(t.words) - 1
}

// prune forgets the words that were never counted, but for those to keep.
func (t *tally) prune(keep func(string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	var counts []int64
	for i, w := range t.words {
		if t.counts[i] > 0 || keep(w) {
			words, counts = append(words, w), append(counts, t.counts[i])
		}
	}
	t.words, t.counts = words, counts
}

// each calls yield for the words, in the order in which they came, with their counts as of one moment, until it returns
// false. It reports whether there are any words.
func (t *tally) each(yield func(string, int64) bool) bool {
	var counts [maxWords]int64
	t.mu.Lock()
	words := t.words[:len(t.words):len(t.words)]
	copy(counts[:], t.counts)
	t.mu.Unlock()
	for i, w := range words {
		if !yield(w, counts[i]) {
			break
		}
	}
	return len(words) > 0
}
