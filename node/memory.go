package node

import (
	"slices"
	"time"
	"unsafe"

	"github.com/windowstat/windowstat/leap"
)

// Memory holds the bytes of heap that a [Statistic] takes, by part. The allocator rounds sizes up, and the numbers
// include this rounding.
type Memory struct {
	// Statistic is the memory of everything except sealed seconds: stripes and their counts, the second window, and
	// totals.
	Statistic int64
	// Seconds is the memory of the records of sealed seconds. Histograms is the memory of the histograms of sealed
	// seconds.
	Seconds, Histograms int64
}

// Sum returns the sum of all parts.
func (m Memory) Sum() int64 { return m.Statistic + m.Seconds + m.Histograms }

// [Config.Reservation] assumes the following sizes: the bytes of a record, the bytes of a histogram, and the number of
// pages of response times. The sizes in bytes were measured with response times around 20 ms. The record of a second
// with 5 calls took 14 bytes, with 100 calls 18, and with 500 calls 22. The histogram of a second with 100 calls took
// 16 bytes.
const (
	reservedSecond    = 22
	reservedHistogram = 24
	reservedPages     = 3 // at the default bounds, enough for response times that vary by a factor of 100
)

// Each of these variables is a number of bytes of heap, including the rounding of the allocator. Each number is for one
// object, except for viewBytes, which is for a View and the header of its list of leaves.
var (
	historyBytes     = allocSize(unsafe.Sizeof(history{}))
	completionsBytes = allocSize(unsafe.Sizeof(completions{}))
	codeTimesBytes   = allocSize(unsafe.Sizeof(codeTimes{}))
	stripeSetBytes   = allocSize(unsafe.Sizeof(stripeSet{}))
	stripeBytes      = allocSize(unsafe.Sizeof(paddedStripe{}))
	viewBytes        = allocSize(unsafe.Sizeof(View{})) + allocSize(unsafe.Sizeof([]*Statistic{}))
	removedBytes     = allocSize(unsafe.Sizeof(removedLeaves{}))
)

// allocSize returns the number of bytes that the allocator uses for an object of n bytes.
func allocSize(n uintptr) int64 { return int64(cap(slices.Grow([]byte(nil), int(n)))) }

// ringBytes returns the memory of the slots of a ring, in bytes.
func ringBytes[B any](r *leap.Array[B]) int64 {
	var b B
	return int64(r.Span()/r.Length()) * int64(8+unsafe.Sizeof(b))
}

// Reservation returns the bytes that a busy statistic takes once its history is full. It assumes up to several hundred
// calls a second. A statistic takes more if it is busier, has several stripes, or has response times that vary widely;
// see [Statistic.Memory].
func (c *Config) Reservation() int64 {
	seconds := int64(c.opts.History/time.Second) + 2
	histograms := int64(c.opts.Histograms/time.Second) + 2
	return int64(unsafe.Sizeof(Statistic{})) + historyBytes + ringBytes(&c.second) + completionsBytes +
		reservedPages*int64(unsafe.Sizeof(page[uint16]{})+unsafe.Sizeof(page[uint32]{})) +
		seconds*reservedSecond + histograms*reservedHistogram
}

// SplitReservation returns the bytes that a statistic with [Statistic.SplitByCode] takes in addition to
// [Config.Reservation]. It assumes calls with three different codes.
func (c *Config) SplitReservation() int64 {
	return 3 * (codeTimesBytes + reservedPages*int64(unsafe.Sizeof(page[uint32]{})))
}

// Memory returns the memory that s takes. It holds all locks of s while it adds up the parts.
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
			m.Statistic += completionsBytes + c.bytes() + c.byCode.bytes() + c.times.bytes()
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

// bytes returns the memory of the pages and spills of p.
func (p *cells[N]) bytes() (n int64) {
	for s := p.spill; s != nil; s = s.next {
		n += int64(unsafe.Sizeof(*s))
	}
	return n + int64(cap(p.pages))*int64(unsafe.Sizeof(page[N]{}))
}

// bytes returns the memory of the counts by code.
func (c codes) bytes() int64 { return int64(cap(c)) * int64(unsafe.Sizeof(codeCount{})) }

// Memory returns the memory that v takes. It does not include the memory of the leaves.
func (v *View) Memory() int64 {
	leaves, removed := v.leavesAndRemoved()
	n := viewBytes + int64(cap(leaves))*int64(unsafe.Sizeof((*Statistic)(nil)))
	if removed != noRemovedLeaves {
		n += removedBytes + removed.rt.bytes() + removed.codes.bytes() + removed.times.bytes()
	}
	return n
}

// QuotaMemory returns the memory of a [Quota] with its ring of passes. A quota from [Quota.With] shares the ring of
// another quota, and takes only a few words.
func (c *Config) QuotaMemory() int64 {
	p := newPasses(c.second.Length())
	return int64(unsafe.Sizeof(Quota{})+unsafe.Sizeof(p)) + ringBytes(&p.ring)
}
