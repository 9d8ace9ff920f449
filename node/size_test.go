//go:build amd64 || arm64

package node

import (
	"testing"
	"time"
	"unsafe"
)

// The fields that every call uses must lie at the start of cache lines, and the structs that contain these fields must
// fill whole cache lines. On 32-bit platforms, the fields do not lie at the start of cache lines. This only makes calls
// slower.
func TestHotFieldsStartAtCacheLines(t *testing.T) {
	var s Statistic
	var a paddedStripe
	for name, got := range map[string]uintptr{
		"Statistic's size":    unsafe.Sizeof(s) - 256,
		"Statistic's open":    unsafe.Offsetof(s.first) + unsafe.Offsetof(s.first.open) - 64,
		"paddedStripe's size": unsafe.Sizeof(a) - 192,
		"paddedStripe's open": unsafe.Offsetof(a.open) - 64,
		"the page's size":     unsafe.Sizeof(page[uint16]{}) - 64,
		"the stripe's mu":     unsafe.Offsetof(s.first) - 8,
		"Counts, in a line":   unsafe.Sizeof(Counts{}) - 64,
	} {
		if got != 0 {
			t.Errorf("%s is %d bytes off", name, int(got))
		}
	}
}

// Every call reads the set of stripes. If the set shares a cache line with memory to which a goroutine writes, calls of
// two goroutines take twice as long. In an earlier version, this happened in one of three processes.
func TestStripesShareNoCacheLines(t *testing.T) {
	var now time.Duration
	for range 100 {
		s := newContended(t, &now)
		s.grow(nil)
		contend(s.picked()[0], minContended, 0)
		check := func(what string, at, size uintptr) {
			if at%64 != 0 || size%64 != 0 {
				t.Fatalf("%s is %d bytes at %x", what, size, at)
			}
		}
		more := s.extra.Load()
		check("the set", uintptr(unsafe.Pointer(more)), unsafe.Sizeof(*more))
		for _, st := range s.picked() {
			check("a stripe", uintptr(unsafe.Pointer(&st.open)), unsafe.Sizeof(paddedStripe{}))
		}
	}
}
