package node_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

func newReal(b *testing.B) (*leap.Timeline, *node.Statistic) {
	line := leap.NewTimeline(leap.Clock{})
	shape, err := node.NewShape(line, node.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return line, node.New(shape, line.Now())
}

// BenchmarkTwoClockReadings is the floor of timing a call.
func BenchmarkTwoClockReadings(b *testing.B) {
	line, _ := newReal(b)
	var sum time.Duration
	for b.Loop() {
		begin := line.Now()
		sum += line.Now().Sub(begin)
	}
	_ = sum
}

// BenchmarkCall is a whole call, both clock readings included.
func BenchmarkCall(b *testing.B) {
	line, s := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		c := s.Enter(line.Now(), 1)
		c.Exit(line.Now(), false)
	}
}

func BenchmarkCallParallel(b *testing.B) {
	line, s := newReal(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := s.Enter(line.Now(), 1)
			c.Exit(line.Now(), false)
		}
	})
}

func BenchmarkPassQPS(b *testing.B) {
	line, s := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.PassQPS(line.Now())
	}
}

func BenchmarkWindow(b *testing.B) {
	line, s := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Window(line.Now())
	}
}

func BenchmarkSnapshot(b *testing.B) {
	line, s := newReal(b)
	var h node.Histogram
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Snapshot(line.Now(), &h)
	}
}

func BenchmarkTwoClockReadingsParallel(b *testing.B) {
	line, _ := newReal(b)
	b.RunParallel(func(pb *testing.PB) {
		var sum time.Duration
		for pb.Next() {
			begin := line.Now()
			sum += line.Now().Sub(begin)
		}
		_ = sum
	})
}
