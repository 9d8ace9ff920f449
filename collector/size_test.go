//go:build amd64 || arm64

package collector

import (
	"fmt"
	"testing"
	"unsafe"
)

// If a handle has not been used for a long time, a call through it loads only two cache lines from memory. One cache
// line has the fields of the resource that the call reads. The other is the first cache line of the leaf. This test
// runs on 64-bit platforms only, because the sizes differ on 32-bit platforms.
func TestACallReadsFewCacheLines(t *testing.T) {
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	line := func(p unsafe.Pointer) uintptr { return uintptr(p) / 64 }
	for i := range 1000 {
		r := c.Resource(fmt.Sprint(i))
		e := r.Enter()
		e.Exit(nil)
		if first := line(unsafe.Pointer(&r.current)); first != line(unsafe.Pointer(&r.limiter)) ||
			first != line(unsafe.Pointer(&r.c)) {
			t.Fatalf("the fields of the resource at %p that a call reads are in two cache lines", r)
		}
		if l := r.current.Load(); uintptr(unsafe.Pointer(l))%64 != 0 || unsafe.Offsetof(l.Statistic) != 0 {
			t.Fatalf("the leaf at %p does not begin a cache line with its Statistic", l)
		}
	}
}
