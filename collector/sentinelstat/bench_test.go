package sentinelstat_test

import (
	"testing"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/flow"
)

// The benchmark measures calls with and without the slot. The difference is the cost of the slot.
func BenchmarkEntry(b *testing.B) {
	_, with := newChain(b)
	without := sentinel.BuildDefaultSlotChain()
	b.Run("pass/without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enter(b, without, "bench").Exit()
		}
	})
	b.Run("pass/with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enter(b, with, "bench").Exit()
		}
	})
	allow(b, "bench closed", flow.Rule{ID: "closed"})
	b.Run("block/without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			refused(b, without, "bench closed")
		}
	})
	b.Run("block/with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			refused(b, with, "bench closed")
		}
	})
}
