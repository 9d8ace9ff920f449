// Package fairshare decides which entry of a full, shared table is evicted: connections, request slots, unread bytes,
// cursors, names.
//
// All these tables follow one rule. The host with the largest total loses an entry: its longest idle one. The rule
// applies only when a table is full, because many clients may share one host, such as the address of a NAT, a load
// balancer or a mesh. The owner of a [Table] decides how large it is and when it must evict.
package fairshare

import "container/heap"

// Kept is the number of entries that a host keeps while another host has more.
const Kept = 2

// MayHave reports whether a host may add an entry to a table. own is the number of entries of the host, all the number
// of entries in use, and most the size of the table. A host may add an entry while it has fewer entries than are free,
// or fewer than eight; a single host therefore gets half of the table. MayHave is for entries that are refused but
// never evicted, such as names.
func MayHave(own, all, most int) bool {
	const few = 8
	left := most - all
	return left > 0 && own < max(left, few)
}

// Table holds entries in the order of eviction. Each entry has a host and an amount. The order is: lowest rank first,
// then entries of the host with the largest total amount, then the longest idle, then the oldest. Each method takes
// time logarithmic in the number of entries. The zero value is an empty table. A Table is not safe for concurrent use.
type Table[H comparable, V any] struct {
	// Kept is the number of entries that a host may have before its total amount matters.
	Kept int
	// Newest evicts the newest entry instead of the oldest.
	Newest bool
	// Used returns the time of the last use of an entry, which must not decrease. The Table calls it only when it
	// searches for an entry to evict, so a use itself costs nothing here. An entry at the front that was used in the
	// meantime moves back once, in about half a microsecond among 8,192 entries. If Used is nil, the idle time of an
	// entry is its age.
	Used func(V) int64

	hosts map[H]*host[H, V]
	order heapOf[*host[H, V]] // of the hosts with entries
	added int64
	n     int
}

// Holder is an entry of a [Table].
type Holder[H comparable, V any] struct {
	Host  H
	Value V

	of     *host[H, V]
	amount int
	rank   int64
	used   int64 // the last use, as of the latest call of Used
	number int64
	at     int // index in the heap of the host; -1 outside of a table
}

// host is a host with at least one entry.
type host[H comparable, V any] struct {
	table   *Table[H, V]
	holders heapOf[*Holder[H, V]]
	amount  int
	at      int // index in the heap of the table; -1 before it is added
}

// Add adds an entry with rank 0. A negative amount moves the host back in the order of eviction.
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

// Remove removes an entry and reports whether it was in the table.
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

// Rank changes the rank of an entry.
func (t *Table[H, V]) Rank(x *Holder[H, V], rank int64) {
	if x.rank != rank && x.at >= 0 {
		x.rank = rank
		t.moved(x)
	}
}

// Len returns the number of entries.
func (t *Table[H, V]) Len() int { return t.n }

// Amount returns the total amount of a host.
func (t *Table[H, V]) Amount(of H) int {
	if h := t.hosts[of]; h != nil {
		return h.amount
	}
	return 0
}

// First returns the next entry to evict, or nil if the table is empty.
func (t *Table[H, V]) First() *Holder[H, V] {
	for len(t.order) > 0 {
		if x := t.order[0].holders[0]; !t.outdated(x) {
			return x
		}
	}
	return nil
}

// FirstOf returns the next entry of a host to evict, or nil for a host without entries.
func (t *Table[H, V]) FirstOf(of H) *Holder[H, V] {
	h := t.hosts[of]
	for h != nil && len(h.holders) > 0 {
		if x := h.holders[0]; !t.outdated(x) {
			return x
		}
	}
	return nil
}

// outdated reports whether an entry was used after its position was computed, and if so moves the entry. The first
// entry that is not outdated is the right one to evict: every other entry was used at its recorded time or later.
func (t *Table[H, V]) outdated(x *Holder[H, V]) bool {
	if t.Used == nil || t.Used(x.Value) == x.used {
		return false
	}
	x.used = t.Used(x.Value)
	t.moved(x)
	return true
}

// moved restores the heap order after an entry changed.
func (t *Table[H, V]) moved(x *Holder[H, V]) {
	heap.Fix(&x.of.holders, x.at)
	t.place(x.of)
}

// place restores the heap order after a host changed. It adds a new host and removes a host without entries.
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

// before reports whether x is evicted before y.
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

// before reports whether the first entry of h is evicted before the first entry of other.
func (h *host[H, V]) before(other *host[H, V]) bool { return h.holders[0].before(other.holders[0]) }

// most returns the total amount of a host, or 0 while the host has at most Kept entries.
func (h *host[H, V]) most() int {
	if len(h.holders) <= h.table.Kept {
		return 0
	}
	return h.amount
}

// ordered is the constraint for items of a heap.
type ordered[T any] interface {
	before(T) bool
	index() *int // its index in the heap
}

// heapOf implements heap.Interface. Each item stores its index, because heap.Fix needs the index of a changed item.
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
