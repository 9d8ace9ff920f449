package main

import (
	"math"
	"strings"
	"testing"
)

// TestReportOfScale checks that a cost that grows with the square of the origins is marked, that a cost proportional to
// the resources is not, and that a size without a measurement has an empty cell.
func TestReportOfScale(t *testing.T) {
	const output = `BenchmarkScale/seal/resources/100-2 	 1	 10000 ns/op
BenchmarkScale/metrics_page/resources/100-2 	 1	 500000 ns/op
BenchmarkScale/seal/resources/1000-2 	 1	 100000 ns/op
BenchmarkScale/seal/resources/10000-2 	 1	 1000000 ns/op
BenchmarkScale/register_through_a_context/origins/1-2 	 1	 100 ns/op
BenchmarkScale/register_through_a_context/origins/10-2 	 1	 10000 ns/op
`
	const before = `BenchmarkScale/seal/resources/100-2 	 1	 10000 ns/op
BenchmarkScale/seal/resources/1000-2 	 1	 1000000 ns/op
`
	for _, c := range []struct{ before, want string }{
		{"", `
| resources | 100 | 1,000 | 10,000 | exponent |
|---|---:|---:|---:|---:|
| seal | 100 | 100 | 100 | 1.00 |
| metrics page | 5,000 |  |  |  |

| origins | 1 | 10 | exponent |
|---|---:|---:|---:|
| register through a context | 100 | 1,000 | **2.00** |
`},
		{before, `
| resources | 100 | 1,000 | 10,000 | exponent | before |
|---|---:|---:|---:|---:|---:|
| seal | 100 | 100 | 100 | 1.00 | **2.00** |
| metrics page | 5,000 |  |  |  |  |

| origins | 1 | 10 | exponent | before |
|---|---:|---:|---:|---:|
| register through a context | 100 | 1,000 | **2.00** |  |
`},
	} {
		out := measured(t, output, c.before)
		if !strings.HasSuffix(out, c.want) {
			t.Errorf("got\n%s\nwant at the end\n%s", out, c.want)
		}
	}
}

func TestExponent(t *testing.T) {
	for _, want := range []float64{0, 0.5, 1, 1.5, 2} {
		var sizes, times []float64
		for n := 1.0; n < 1e6; n *= 7 {
			sizes, times = append(sizes, n), append(times, 13*math.Pow(n, want))
		}
		if got := exponent(sizes, times); math.Abs(got-want) > 1e-9 {
			t.Errorf("the exponent of n^%v is %v", want, got)
		}
	}
	// A constant part and noise of a tenth keep a proportional cost below the mark.
	for _, noise := range []float64{0.9, 1.1} {
		if e := exponent([]float64{100, 1000, 10_000}, []float64{100 * 10, 1000 * 10, 10_000 * 10 * noise}); e > steep {
			t.Errorf("with noise of %v: %v", noise, e)
		}
	}
}

// TestReportOfBefore checks the column of the earlier revision: its own figure, its ratio to the rival that ran next to
// the current revision, and an empty cell for benchmarks that did not run.
func TestReportOfBefore(t *testing.T) {
	const now = `BenchmarkCall/windowstat-2 	 1000	 100.0 ns/op	 0 allocs/op
BenchmarkCall/victoriametrics-le-2 	 1000	 80.0 ns/op	 0 allocs/op
BenchmarkMemory/windowstat-full-2 	 1	 5000 B/resource
BenchmarkPair/windowstat/sentinel-golang-entry-2 	 1	 50.0 ns/op	 100.0 max-ns	 40.0 min-ns	 ` +
		`1200 other-max-ns	 900.0 other-min-ns	 1000 other-ns/op	 0.05 ratio	 0.1 slowest-ratio
BenchmarkLogBehind/60s-2 	 1	 100.0 ns/row
BenchmarkLogBehind/3500s-2 	 1	 100.0 ns/row
BenchmarkHistoryBehind/3500s-2 	 1	 50.0 ns/row
BenchmarkSweep/50000-kept-2 	 1	 1000 ns/op	 9000000 max-ns
BenchmarkWaits/set-limits-2 	 1	 11000000 handle-max-ns	 100.0 handle-p50-ns	 ` +
		`400.0 handle-p99.9-ns	 4000000 new-max-ns	 300.0 new-p50-ns	 500.0 new-p99.9-ns
`
	const before = `BenchmarkCall/windowstat-2 	 1000	 120.0 ns/op	 0 allocs/op
BenchmarkMemory/windowstat-full-2 	 1	 8397 B/resource
BenchmarkLogBehind/60s-2 	 1	 400.0 ns/row
BenchmarkLogBehind/3500s-2 	 1	 900.0 ns/row
BenchmarkPair/windowstat/sentinel-golang-entry-2 	 1	 80.0 ns/op	 200.0 max-ns	 40.0 min-ns	 ` +
		`1200 other-max-ns	 900.0 other-min-ns	 1000 other-ns/op	 0.08 ratio	 0.2 slowest-ratio
`
	out := measured(t, now, before)
	for _, want := range []string{
		"| what | windowstat | rival | ratio or figure | before | must | aim |  |\n",
		"| call, serial: VictoriaMetrics handles kept | 100 | 80 | 1.25 | 1.50 | 1.20 | 1.00 | **missed** |\n",
		"| memory, windows full | 5,000 |  | 5,000 | 8,397 | 6,144 | 5,120 | aim met |\n",
		"| call, two goroutines on one resource, the slowest: sentinel-golang Entry and Exit | 100 | 1,000 | 1/10 | " +
			"1/5 | 1/18 | 1/20 | **missed**: " + byProcessor + " |\n",
		"| metric log that is 3,500 s behind, a row: 60 s | 100 | 100 | 1.00 | 2.25 | 1.25 | 1.10 | aim met |\n",
		"| longest Seal while 50,000 leaves are looked at, none of them idle | 9,000,000 |  | 9,000,000 |  | " +
			"10,000,000 | 10,000,000 | aim met |\n",
		"| longest wait of others while 1,000 patterns are set as limits of 10,000 resources | 11,000,000 |  | " +
			"11,000,000 |  | 10,000,000 | 10,000,000 | **missed**: " + onProcessors + " |\n",
		"| set limits | new | 300 ±0% | 500 ±0% | 4,000,000 ±0% |\n",
		"| windowstat | 40 | 50 | 100 | sentinel-golang-entry | 900 | 1,000 | 1,200 |\n",
		"| 3500s | 100 ±0% | 50 ±0% |\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestReportRefusesBeforeWithoutBenchmarks(t *testing.T) {
	err := run(strings.NewReader("BenchmarkCall/windowstat-2 1 100 ns/op\n"), strings.NewReader("PASS\n"),
		&strings.Builder{}, "", true)
	if err == nil {
		t.Error("a report was made from it")
	}
}

// measured returns the report of an output, and of the output of an earlier revision if before is not empty.
func measured(t *testing.T, output, before string) string {
	t.Helper()
	var out strings.Builder
	var err error
	if before == "" {
		err = run(strings.NewReader(output), nil, &out, "", true)
	} else {
		err = run(strings.NewReader(output), strings.NewReader(before), &out, "", true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
