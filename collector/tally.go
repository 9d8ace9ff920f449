package collector

import (
	"iter"
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
	t.counts[i] += n
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

// all iterates over the words, in the order in which they came, with their counts as of one moment.
func (t *tally) all() iter.Seq2[string, int64] {
	t.mu.Lock()
	words, counts := t.words[:len(t.words):len(t.words)], append([]int64(nil), t.counts...)
	t.mu.Unlock()
	return func(yield func(string, int64) bool) {
		for i, w := range words {
			if !yield(w, counts[i]) {
				return
			}
		}
	}
}
