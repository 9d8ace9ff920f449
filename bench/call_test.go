package bench_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
)

// many is the number of resources of a large service.
const many = 10_000

// BenchmarkCall measures finished requests to one resource, one after the other.
func BenchmarkCall(b *testing.B) {
	eachRival(b, bench.Rivals(), 1, serial)
}

// BenchmarkCallParallel measures finished requests to one resource from one goroutine per processor.
func BenchmarkCallParallel(b *testing.B) {
	eachRival(b, bench.Rivals(), 1, parallel)
}

// BenchmarkLimit measures finished requests, one after the other, to one resource whose limit admits all of them.
func BenchmarkLimit(b *testing.B) {
	eachRival(b, bench.Limiters(bench.NeverReached), 1, serial)
}

// BenchmarkLimitParallel is BenchmarkLimit from one goroutine per processor.
func BenchmarkLimitParallel(b *testing.B) {
	eachRival(b, bench.Limiters(bench.NeverReached), 1, parallel)
}

func serial(b *testing.B, call func(int)) {
	for b.Loop() {
		call(0)
	}
}

func parallel(b *testing.B, call func(int)) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(0)
		}
	})
}

// BenchmarkCall10000 measures requests to 10,000 resources at random. Their memory is mostly not in the cache.
func BenchmarkCall10000(b *testing.B) {
	picks := bench.Picks(many)
	eachRival(b, bench.Rivals(), many, func(b *testing.B, call func(int)) {
		i := 0
		for b.Loop() {
			call(int(picks[i&(len(picks)-1)]))
			i++
		}
	})
}

// BenchmarkCall10000Parallel is BenchmarkCall10000 from one goroutine per processor.
func BenchmarkCall10000Parallel(b *testing.B) {
	picks := bench.Picks(many)
	eachRival(b, bench.Rivals(), many, func(b *testing.B, call func(int)) {
		var starts atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			i := int(starts.Add(7919))
			for pb.Next() {
				call(int(picks[i&(len(picks)-1)]))
				i++
			}
		})
	})
}

// eachRival runs a benchmark with each rival, on n resources in use. The resources are created when the benchmark first
// runs, and reused for each number of iterations.
func eachRival(b *testing.B, rivals []bench.Rival, n int, run func(b *testing.B, call func(int))) {
	for _, r := range rivals {
		var rec bench.Recorder
		b.Run(r.Name, func(b *testing.B) {
			if rec.Call == nil {
				var err error
				if rec, err = r.New(bench.Names(n)); err != nil {
					b.Fatal(err)
				}
				warm(rec, n)
			}
			b.ReportAllocs()
			b.ResetTimer()
			run(b, rec.Call)
		})
		if rec.Close != nil {
			rec.Close()
		}
	}
}

// warm calls every resource until it has allocated all its memory.
func warm(rec bench.Recorder, n int) {
	end := time.Now()
	if rec.Warm {
		end = end.Truncate(time.Second).Add(1010 * time.Millisecond)
	}
	for over := false; !over; {
		over = !time.Now().Before(end)
		for i := range n {
			rec.Call(i)
		}
	}
	runtime.GC()
}
