// Package fairshare decides who gives way when something that many hosts share is used up: connections, places, bytes that nobody
// reads, cursors, names.
//
// All of them have one rule. The host that has the most gives way, and of its holders the one that has been idle longest.
// Shares matter only when something is used up, because many clients may be one host: behind a NAT, a balancer or in a
// mesh. How much there is, and when a holder must give way, is decided by the package that has the [Table].
package fairshare

import "container/heap"

// Kept is how many holders are left to each host, while others have more.
const Kept = 2

// MayHave reports whether a host that has own of all that are in use may have one more, where there may be most: while it has fewer
// than are left, or fewer than eight. So one host alone gets half of them. It is for what is refused, and never taken away from another
// host, such as names.
func MayHave(own, all, most int) bool {
	const few = 8
	left := most - all
	return left > 0 && own < max(left, few)
}

// Table keeps holders, each of a host and with an amount, in the order in which they give way: the lowest rank first, then
// those of the host that has the most, then the longest idle, then the oldest. Each method takes time in proportion to the
// logarithm of how many there are. The zero value is an empty table. It is not safe for concurrent use.
type Table[H comparable, V any] struct {
	// Kept is how many holders a host may have before it matters how much it has.
	Kept int
	// Newest has the newest give way in place of the oldest.
	Newest bool
	// Used returns when a holder was used last, which must not decrease. It is called when a holder must give way: a use itself
	// costs nothing here, and a holder that comes first and was used since moves back once, in about half a microsecond among
	// 8,192. If it is nil, holders are as idle as they are old.
	Used func(V) int64

	hosts map[H]*host[H, V]
	order heapOf[*host[H, V]] // of those that have holders
	added int64
	n     int
}

// Holder is one holder in a table.
type Holder[H comparable, V any] struct {
	Host  H
	Value V

	of     *host[H, V]
	amount int
	rank   int64
	used   int64 // as far as it is known
	number int64
	at     int // in the heap of the host; -1 if it is in no table
}

// host is one that has holders.
type host[H comparable, V any] struct {
	table   *Table[H, V]
	holders heapOf[*Holder[H, V]]
	amount  int
	at      int // in the heap of the table; -1 while it is not there yet
}

// Add adds a holder, with the rank 0. Its amount may be negative: then the host gives way later.
func (t *Table[H, V]) Add(of H, amount int, value V) *Holder[H, V] {
	h := t.hosts[of]
	if h == nil {
		if t.hosts == nil {
			t.hosts = map[H]*host[H, V]{}
		}
		h = &host[H, V]{table: t, at: -1}
		t.hosts[of] = h
	}
	t.added++
	x := &Holder[H, V]{Host: of, Value: value, of: h, amount: amount, number: t.added}
	if t.Newest {
		x.number = -t.added
	}
	if t.Used != nil {
		x.used = t.Used(value)
	}
	t.n++
	h.amount += amount
	heap.Push(&h.holders, x)
	t.place(h)
	return x
}

// Remove removes a holder, and reports whether it was there.
func (t *Table[H, V]) Remove(x *Holder[H, V]) bool {
	if x.at < 0 {
		return false
	}
	t.n--
	x.of.amount -= x.amount
	heap.Remove(&x.of.holders, x.at)
	t.place(x.of)
	if len(x.of.holders) == 0 {
		delete(t.hosts, x.Host)
	}
	return true
}

// Rank changes the rank of a holder.
func (t *Table[H, V]) Rank(x *Holder[H, V], rank int64) {
	if x.rank != rank && x.at >= 0 {
		x.rank = rank
		t.moved(x)
	}
}

// Len returns how many holders there are.
func (t *Table[H, V]) Len() int { return t.n }

// Amount returns how much a host has.
func (t *Table[H, V]) Amount(of H) int {
	if h := t.hosts[of]; h != nil {
		return h.amount
	}
	return 0
}

// First returns the holder that gives way before all others, nil if there is none.
func (t *Table[H, V]) First() *Holder[H, V] {
	for len(t.order) > 0 {
		if x := t.order[0].holders[0]; !t.late(x) {
			return x
		}
	}
	return nil
}

// FirstOf returns the holder of a host that gives way before its others, nil if it has none.
func (t *Table[H, V]) FirstOf(of H) *Holder[H, V] {
	h := t.hosts[of]
	for h != nil && len(h.holders) > 0 {
		if x := h.holders[0]; !t.late(x) {
			return x
		}
	}
	return nil
}

// late reports whether a holder was used after its position was decided, and decides that again. The first holder that was not
// is the one that gives way: the others were used at the times that are known, or later.
func (t *Table[H, V]) late(x *Holder[H, V]) bool {
	if t.Used == nil || t.Used(x.Value) == x.used {
		return false
	}
	x.used = t.Used(x.Value)
	t.moved(x)
	return true
}

// moved puts a holder that has changed where it belongs.
func (t *Table[H, V]) moved(x *Holder[H, V]) {
	heap.Fix(&x.of.holders, x.at)
	t.place(x.of)
}

// place puts a host that has changed where it belongs.
func (t *Table[H, V]) place(h *host[H, V]) {
	switch {
	case len(h.holders) == 0:
		heap.Remove(&t.order, h.at)
	case h.at < 0:
		heap.Push(&t.order, h)
	default:
		heap.Fix(&t.order, h.at)
	}
}

func (x *Holder[H, V]) index() *int { return &x.at }

// before reports whether a holder gives way before another.
func (x *Holder[H, V]) before(y *Holder[H, V]) bool {
	if x.rank != y.rank {
		return x.rank < y.rank
	}
	if mine, other := x.of.most(), y.of.most(); mine != other {
		return mine > other
	}
	if x.used != y.used {
		return x.used < y.used
	}
	return x.number < y.number
}

func (h *host[H, V]) index() *int { return &h.at }

// before reports whether the first of a host gives way before the first of another.
func (h *host[H, V]) before(other *host[H, V]) bool { return h.holders[0].before(other.holders[0]) }

// most returns how much a host has, as far as it matters.
func (h *host[H, V]) most() int {
	if len(h.holders) <= h.table.Kept {
		return 0
	}
	return h.amount
}

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
