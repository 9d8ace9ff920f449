package bench_test

import (
	"testing"

	"github.com/windowstat/windowstat/bench"
)

// TestWindowsReadBurstsAndSteadyLoad checks the exact reading of each window. The correct readings are 1,200 in the
// burst and 1,000 in each second.
func TestWindowsReadBurstsAndSteadyLoad(t *testing.T) {
	for name, want := range map[string]struct{ burst, steady int64 }{
		// Buckets of half a second resolve a burst to their length; the open bucket makes the reading inexact.
		"windowstat":           {1100, 501},
		"sentinel-golang-node": {1100, 501},
		"sentinel-ring":        {1100, 501},
		"sub-window-list":      {1100, 501},
		// Complete seconds are exact.
		"windowstat-last-second": {600, 1000},
		"windowstat-peak":        {1100, 1000},
		"second-map":             {600, 1000},
		// A fixed window does not remember calls before its boundary.
		"fixed-window": {600, 1},
	} {
		s := subject(t, name)
		burst, err := bench.BurstRead(s)
		if err != nil {
			t.Fatal(err)
		}
		steady, err := bench.SteadyRead(s)
		if err != nil {
			t.Fatal(err)
		}
		if burst != want.burst || steady != want.steady {
			t.Errorf("%s reads a burst of %d as %d and %d a second as %d, want %d and %d",
				name, bench.BurstCalls, burst, bench.SteadyRate, steady, want.burst, want.steady)
		}
	}
}

func subject(t *testing.T, name string) bench.Subject {
	t.Helper()
	for _, s := range bench.Subjects() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no subject %q", name)
	return bench.Subject{}
}

// BenchmarkAccuracy reports the reading of each window for a burst and for a steady load.
func BenchmarkAccuracy(b *testing.B) {
	for _, s := range bench.Subjects() {
		b.Run(s.Name, func(b *testing.B) {
			var burst, steady int64
			for range b.N {
				var err error
				if burst, err = bench.BurstRead(s); err != nil {
					b.Fatal(err)
				}
				if steady, err = bench.SteadyRead(s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(burst), "burst-read")
			b.ReportMetric(float64(steady), "steady-read")
			b.ReportMetric(0, "ns/op")
		})
	}
}
