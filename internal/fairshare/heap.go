package fairshare

// ordered is what a heap orders.
type ordered[T any] interface {
	before(T) bool
	index() *int // its index in the heap
}

// heapOf is a heap, for container/heap, whose items know where they are, so that one that changes can be moved.
type heapOf[T ordered[T]] []T

// Len implements heap.Interface.
func (h heapOf[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h heapOf[T]) Less(i, j int) bool { return h[i].before(h[j]) }

// Swap implements heap.Interface.
func (h heapOf[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].index(), *h[j].index() = i, j
}

// Push implements heap.Interface.
func (h *heapOf[T]) Push(x any) {
	*x.(T).index() = len(*h)
	*h = append(*h, x.(T))
}

// Pop implements heap.Interface.
func (h *heapOf[T]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*x.index() = -1
	return x
}
