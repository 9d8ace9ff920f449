//go:build amd64 || arm64

package node

import (
	"testing"
	"unsafe"
)

// The sizes are what keeps hot fields on their own cache lines. 32-bit platforms have other sizes, and get by.
func TestHotFieldsBeginWhereCacheLinesDo(t *testing.T) {
	var s Statistic
	var a paddedStripe
	for name, got := range map[string]uintptr{
		"Statistic's size":    unsafe.Sizeof(s) - 256,
		"Statistic's open":    unsafe.Offsetof(s.first) + unsafe.Offsetof(s.first.open) - 64,
		"paddedStripe's size": unsafe.Sizeof(a) - 192,
		"paddedStripe's open": unsafe.Offsetof(a.open) - 64,
		"the page's size":     unsafe.Sizeof(page{}) - 256,
		"the stripe's mu":     unsafe.Offsetof(s.first) - 8,
		"Counts, in a line":   unsafe.Sizeof(Counts{}) - 64,
	} {
		if got != 0 {
			t.Errorf("%s is %d bytes off", name, int(got))
		}
	}
}
