package node_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

func newReal(b *testing.B) (*leap.Timeline, *node.Statistic, *node.View) {
	line := leap.NewTimeline(leap.Clock{})
	config, err := node.NewConfig(line, node.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, v := node.New(config, line.Now()), node.NewView(config, line.Now())
	v.Add(s)
	return line, s, v
}

// BenchmarkTwoClockReadings measures two clock readings. Every timed call needs at least these two.
func BenchmarkTwoClockReadings(b *testing.B) {
	line, _, _ := newReal(b)
	var sum time.Duration
	for b.Loop() {
		begin := line.Now()
		sum += line.Now().Sub(begin)
	}
	_ = sum
}

// BenchmarkCall measures a whole call, including the two clock readings of the call.
func BenchmarkCall(b *testing.B) {
	line, s, _ := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		c := s.Enter(line.Now(), 1)
		c.Exit(line.Now(), false, 0)
	}
}

func BenchmarkCallParallel(b *testing.B) {
	line, s, _ := newReal(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := s.Enter(line.Now(), 1)
			c.Exit(line.Now(), false, 0)
		}
	})
}

func BenchmarkPassQPS(b *testing.B) {
	line, _, v := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = v.PassQPS(line.Now())
	}
}

func BenchmarkWindow(b *testing.B) {
	line, _, v := newReal(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = v.Window(line.Now())
	}
}

func BenchmarkSnapshot(b *testing.B) {
	line, _, v := newReal(b)
	var h node.Histogram
	b.ReportAllocs()
	for b.Loop() {
		_ = v.Snapshot(line.Now(), &h)
	}
}

func BenchmarkTwoClockReadingsParallel(b *testing.B) {
	line, _, _ := newReal(b)
	b.RunParallel(func(pb *testing.PB) {
		var sum time.Duration
		for pb.Next() {
			begin := line.Now()
			sum += line.Now().Sub(begin)
		}
		_ = sum
	})
}
