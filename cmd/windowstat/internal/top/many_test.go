package top

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// The benchmark serves, reads and draws a second of 10,000 busy resources.
func BenchmarkMany(b *testing.B) {
	s := newService(b)
	second := func() {
		for i := range 10_000 {
			e := s.Resource(fmt.Sprintf("GET /api/v1/customers/{id}/orders/%d", i)).Enter()
			e.Exit(nil)
		}
		s.end()
	}
	u := newUI(b, s.serve(b))
	for range 70 {
		second()
	}
	u.read(b, time.Now())
	screen := newScreen(b, 200, 60)
	var read, draw time.Duration
	for b.Loop() {
		second()
		read += processorTime(b, func() { u.targets[0].take(u.targets[0].read(b.Context(), inbound), time.Now()) })
		draw += processorTime(b, func() { u.draw(screen, time.Now()) })
	}
	b.ReportMetric(read.Seconds()*1000/float64(b.N), "read-ms")
	b.ReportMetric(draw.Seconds()*1000/float64(b.N), "draw-ms")
}

// processorTime returns the processor time of the process during do.
func processorTime(b *testing.B, do func()) time.Duration {
	used := func() time.Duration {
		var x syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &x); err != nil {
			b.Fatal(err)
		}
		return time.Duration(x.Utime.Nano() + x.Stime.Nano())
	}
	before := used()
	do()
	return used() - before
}
