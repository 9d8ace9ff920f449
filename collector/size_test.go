//go:build amd64 || arm64

package collector

import (
	"fmt"
	"testing"
	"unsafe"
)

// A call by a handle misses the cache once for the resource, and once for the first line of its leaf, if it was not
// used for long. 32-bit platforms have other sizes, and get by.
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
			t.Fatalf("a resource at %p has what a call reads in two lines", r)
		}
		if l := r.current.Load(); uintptr(unsafe.Pointer(l))%64 != 0 || unsafe.Offsetof(l.Statistic) != 0 {
			t.Fatalf("a leaf is at %p", l)
		}
	}
}
