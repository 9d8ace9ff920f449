package node

import (
	"slices"
	"time"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// Memory holds the bytes of heap that a [Statistic] takes, by part. It includes the rounding of sizes by the
// allocator.
type Memory struct {
	// Statistic is the memory without records and histograms: counters, stripes, the second window, and totals.
	Statistic int64
	// Seconds is the memory of the records of sealed seconds, and Histograms the memory of their histograms.
	Seconds, Histograms int64
}

// Sum returns the sum of all parts.
func (m Memory) Sum() int64 { return m.Statistic + m.Seconds + m.Histograms }

// The memory of a busy statistic, for [Config.Reservation]. With response times around 20 ms, a second takes 14 bytes
// with 5 calls, 18 with 100, and 22 with 500. The histogram of a second with 100 calls takes 16 bytes.
const (
	reservedSecond    = 22
	reservedHistogram = 24
	reservedPages     = 3 // response times that vary by a factor of 8 lie in three pages
)

// Sizes of the parts that are allocated as a whole.
var (
	historyBytes     = allocSize(unsafe.Sizeof(history{}))
	completionsBytes = allocSize(unsafe.Sizeof(completions{}))
	stripeSetBytes   = allocSize(unsafe.Sizeof(stripeSet{}))
	stripeBytes      = allocSize(unsafe.Sizeof(paddedStripe{}))
	viewBytes        = allocSize(unsafe.Sizeof(View{})) + allocSize(unsafe.Sizeof([]*Statistic{}))
	removedBytes     = allocSize(unsafe.Sizeof(removedLeaves{}))
)

// allocSize returns the bytes of heap that the allocator takes for an object of n bytes.
func allocSize(n uintptr) int64 { return int64(cap(slices.Grow([]byte(nil), int(n)))) }

// ringBytes returns the memory of the slots of a ring.
func ringBytes[B any](r *leap.Array[B]) int64 {
	var b B
	return int64(r.Span()/r.Length()) * int64(8+unsafe.Sizeof(b))
}

// Reservation returns the bytes that a busy statistic takes once its history is full. It suffices for some hundred
// calls a second. Busier statistics, statistics with several stripes, and statistics whose response times vary widely
// may take more; see [Statistic.Memory].
func (c *Config) Reservation() int64 {
	seconds := int64(c.opts.History/time.Second) + 2
	histograms := int64(c.opts.Histograms/time.Second) + 2
	return int64(unsafe.Sizeof(Statistic{})) + historyBytes + ringBytes(&c.second) + completionsBytes +
		reservedPages*int64(unsafe.Sizeof(page[uint16]{})+unsafe.Sizeof(page[uint32]{})) +
		seconds*reservedSecond + histograms*reservedHistogram
}

// Memory returns the memory that s takes. It holds the locks of s for a short sum.
func (s *Statistic) Memory() (m Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockStripes()
	defer s.unlockStripes()
	m.Statistic = int64(unsafe.Sizeof(*s))
	if more := s.extra.Load(); more != nil {
		m.Statistic += stripeSetBytes + int64(len(more.list()))*stripeBytes
	}
	for st := range s.stripes {
		if c := st.completions; c != nil {
			m.Statistic += completionsBytes + c.bytes() + c.byCode.bytes()
		}
	}
	if s.counters != nil {
		m.Statistic += int64(unsafe.Sizeof(*s.counters)) +
			int64(cap(*s.counters))*int64(unsafe.Sizeof((*s.counters)[0]))
	}
	if h := s.history; h != emptyHistory {
		m.Statistic += historyBytes + ringBytes(&h.window) + h.rt.bytes() +
			int64(cap(h.loans))*int64(unsafe.Sizeof(loan{}))
		m.Seconds, m.Histograms = int64(cap(h.seconds.buf)), int64(cap(h.histograms.buf))
	}
	return m
}

// bytes returns the memory that p takes in addition to its struct.
func (p *cells[N]) bytes() (n int64) {
	for s := p.spill; s != nil; s = s.next {
		n += int64(unsafe.Sizeof(*s))
	}
	return n + int64(cap(p.pages))*int64(unsafe.Sizeof(page[N]{}))
}

// bytes returns the memory of the counts.
func (c codes) bytes() int64 { return int64(cap(c)) * int64(unsafe.Sizeof(codeCount{})) }

// Memory returns the memory that v takes, without the memory of its leaves.
func (v *View) Memory() int64 {
	leaves, removed := v.leavesAndRemoved()
	n := viewBytes + int64(cap(leaves))*int64(unsafe.Sizeof((*Statistic)(nil)))
	if removed != noRemovedLeaves {
		n += removedBytes + removed.rt.bytes() + removed.codes.bytes()
	}
	return n
}

// QuotaMemory returns the memory of a [Quota] with its passes. A quota of [Quota.With] adds only a few words.
func (c *Config) QuotaMemory() int64 {
	p := newPasses(c.second.Length())
	return int64(unsafe.Sizeof(Quota{})+unsafe.Sizeof(p)) + ringBytes(&p.ring)
}
