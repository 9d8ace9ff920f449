package timeline

// MaxKnown is the maximum number of names in a Known.
const MaxKnown = 50_000

// Known caches the results of naming, by the text that a result depends on. Naming is most of the cost of a call, and
// a lookup with Known[string(key)] does not allocate. Concurrent use is not safe.
type Known[V any] map[string]V

// Add stores the result for a key. If there are MaxKnown results, Add removes all of them first. Those in use return
// with their next call.
func (k Known[V]) Add(key []byte, v V) {
	if len(k) >= MaxKnown {
		clear(k)
	}
	k[string(key)] = v
}
