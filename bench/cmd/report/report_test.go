package main

import (
	"slices"
	"strings"
	"testing"
)

// output contains two runs. In the second run every operation takes twice as long.
const output = `date: 2026-01-02
go: go1.99
cpus: 4
module00: example.com/rival v1.2.3
goos: linux
goarch: amd64
cpu: Some CPU
BenchmarkCall/windowstat-2 	 1000	 100.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/two-clock-readings-2 	 1000	 60.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/victoriametrics-le-2 	 1000	 80.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/client_golang-classic-2 	 1000	 125.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkMemory/windowstat-full-2 	 1	 6000 B/resource
BenchmarkBeside/context/handle-2 	 300	 390.0 ns/op	 130.0 other-ns/op	 2.900 ratio
BenchmarkLimit/windowstat-2 	 1000	 150.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkLimit/rate-and-windowstat-2 	 1000	 225.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkMiddleware/windowstat-route-2 	 1000	 400.0 ns/op	 416 B/op	 3 allocs/op
BenchmarkMiddleware/promhttp-2 	 1000	 800.0 ns/op	 912 B/op	 9 allocs/op
PASS
BenchmarkCall/windowstat-2 	 1000	 200.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/two-clock-readings-2 	 1000	 120.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/victoriametrics-le-2 	 1000	 160.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/client_golang-classic-2 	 1000	 250.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkMemory/windowstat-full-2 	 1	 6000 B/resource
BenchmarkBeside/context/handle-2 	 300	 410.0 ns/op	 130.0 other-ns/op	 3.140 ratio
BenchmarkMemory40000/windowstat-2 	 1	 5000 B/leaf	 190.5 MiB	 -0.25 grown-MiB
BenchmarkSize/windowstat-2 1 21000000 B
BenchmarkLive/gzip/1000-resources/100-viewers-2 4 31936 first-B 753 B/s/viewer 1.13 core-percent ` +
	`4.35 other-core-percent 101.0 ns/op 100.0 other-ns/op 1.010 ratio
BenchmarkLost/windowstat/2x500ms/writers=8/pass-2 	 5000000	 0 lost	 0.00 lost-ppm	 80 turns	 ` +
	`0 wrong-turns	 0 worst-lost
BenchmarkLost/sentinel-golang/20x500ms/writers=8/pass-2 	 5000000	 700 lost	 140.00 lost-ppm	 ` +
	`80 turns	 30 wrong-turns	 9 worst-lost
`

func TestReport(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(output), nil, &out, "make it", false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- Command: `make it`\n- Date: 2026-01-02\n" +
			"- Machine: Some CPU, 4 processors, linux/amd64; benchmarks on 2 of them\n- Go: 1.99\n" +
			"- example.com/rival v1.2.3\n",
		"the benchmarks ran 2 times",
		"| call, serial: two clock readings | 150 | 90 | 1.67 | 1.80 | 1.50 | must met |\n",
		"| call, serial: client_golang handles kept | 150 | 188 | 0.80 | 1.00 | 0.85 | aim met |\n",
		"| call, serial: VictoriaMetrics handles kept | 150 | 120 | 1.25 | 1.20 | 1.00 | **missed** |\n",
		"| call, serial: sentinel-golang Entry and Exit |  |  |  | 1/7 | 1/10 | not measured |\n",
		"| memory, windows full | 6,000 |  | 6,000 | 6,144 | 5,120 | must met |\n",
		"| call through a context: by handle | 400 | 130 | 3.02 | 2.50 | 2.50 | **missed** |\n",
		"| memory, of the same, what it grows in another minute, MiB | -0.25 |  | -0.25 | 4 | 0 | aim met |\n",
		"| live page of 1,000 resources, percent of a core for 100 viewers | 1.13 |  | 1.13 | 10 | 10 | aim met |\n",
		"| call while 200 look: while nobody does | 101 | 100 | 1.01 | 1.10 | 1.05 | aim met |\n",
		"| 100 viewers of 1000 resources | gzip | 31,936 | 753 | 1.13 | 4.35 | 101 | 100 | 1.01 |\n",
		"| events lost or counted twice under the hammer | 0 |  | 0 | 0 | 0 | aim met |\n",
		"- a call, serial (150 ns/op): victoriametrics-le 120 (0.80)\n",
		"- targets missed: call, serial: VictoriaMetrics handles kept; call through a context: by handle\n",
		"- a call with a limit, serial (150 ns/op): nothing\n",
		"| rate-and-windowstat | 225 ±0% | 1.50 |  |  | 0 | blocks, limits on what is in flight |\n",
		"| promhttp | 800 ±0% | 2 | 9 | 912 |\n",
		"has 21 MB.\n",
		"take 5,000 bytes for each resource and origin.\n",
		"| context | 400 ±1% | handle | 130 ±0% | 3.02 ±2% |\n",
		"| client_golang-classic | 188 ±17% | 1.25 |",
		"| sentinel-golang, 20x500ms, writers=8, pass |  |  | 700 | 140 | 80 | 30 | 9 |\n",
		"| 140 in 20x500ms |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A report of pages has no other tables, and only measured targets.
func TestReportOfPages(t *testing.T) {
	const output = `BenchmarkPage/text/client_golang-2 	 1	 100000000 ns/op	 1500000000 other-ns/op	 ` +
		`0.066 ratio	 1000 own-allocs/op	 12000 other-allocs/op	 0.083 allocs-ratio	 19.05 MB/page
BenchmarkStorm/1/constant-pages-2 	 1	 1000 calls/s	 4000000 max-ns	 200.0 p50-ns	 400.0 p99-ns	 ` +
		`4000 p99.9-ns	 20000 p99.99-ns	 10 scrapes/s
BenchmarkStorm/1/windowstat-pages-2 	 1	 1000 calls/s	 4000000 max-ns	 210.0 p50-ns	 ` +
		`400.0 p99-ns	 5000 p99.9-ns	 10000 p99.99-ns	 10 scrapes/s
BenchmarkStorm/1/constant-pages-2 	 1	 1000 calls/s	 7000000 max-ns	 200.0 p50-ns	 400.0 p99-ns	 ` +
		`4000 p99.9-ns	 20000 p99.99-ns	 10 scrapes/s
BenchmarkAttached/1000-resources-2 	 1	 5000000 B/s	 2609 allocs/s	 180000 bare-B/s	 ` +
		`1192 bare-allocs/s	 34655 bare-call-p99.99-ns	 4.365 bare-core-percent	 535039 bare-late-p50-ns ` +
		`1100000 bare-late-p99-ns	 9.067 bare-peak-MiB	 27887 call-p99.99-ns	 5.865 core-percent	 ` +
		`540671 late-p50-ns	 2060000 late-p99-ns	 35.47 peak-MiB
BenchmarkReplay/windowstat-2 	 1	 7000000000 ns/op	 2000000000 cpu-ns/op	 142857 lines/s	 30.4 peak-MiB
BenchmarkReplay/goaccess-2 	 1	 28000000000 ns/op	 24000000000 cpu-ns/op	 35714 lines/s	 162.9 peak-MiB
BenchmarkStorm/1/windowstat-pages-2 	 1	 1000 calls/s	 3000000 max-ns	 210.0 p50-ns	 ` +
		`400.0 p99-ns	 5000 p99.9-ns	 10000 p99.99-ns	 10 scrapes/s
`
	var out strings.Builder
	if err := run(strings.NewReader(output), nil, &out, "", true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| page of 10,000 resources, text: client_golang | 100,000,000 | 1,500,000,000 | 1/15.2 | 1/14 | 1/20 | must " +
			"met |\n",
		"| allocations, page of 10,000 resources, text: client_golang | 1,000 | 12,000 | 1/12 | 1/10 | 1/20 | must " +
			"met |\n",
		"| 10,000 resources | text | 100 ±0% | client_golang | 1,500 ±0% | 1/15.2 | 1,000 | 12,000 | 1/12 | 19.1 | " +
			"to work out what it shows |\n",
		"| 1 | constant pages | 200 ±0% | 400 ±0% | 4,000 ±0% | 20,000 ±0% | 7,000,000 | 1,000 | 10 |\n",
		"| 1 | 1.05 | 1.00 | 1.25 | 0.50 |\n",
		"| 1000 resources | bare | 4.37 | 0.54 | 1.10 | 34,655 | 0.18 | 1,192 | 9.07 |\n",
		"| 1000 resources | everything | 5.87 | 0.54 | 2.06 | 27,887 | 5 | 2,609 | 35.5 |\n",
		"| replay of an access log, processor time: goaccess | 2,000,000,000 | 24,000,000,000 | 1/12 | 1/9 | 1/12 | " +
			"aim met |\n",
		"| windowstat | 7 ±0% | 2 ±0% | 142,857 | 30.4 |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q", want)
		}
	}
	for _, not := range []string{"not measured", "## One finished request", "# Results"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("there is %q", not)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestReportRefusesWhatIsNoOutput(t *testing.T) {
	for _, in := range []string{"", "PASS\n", "BenchmarkCall/windowstat-2 100 many ns/op\n"} {
		if err := run(strings.NewReader(in), nil, &strings.Builder{}, "", false); err == nil {
			t.Errorf("a report was made from %q", in)
		}
	}
}

// TestReasons checks that every reason belongs to an existing target.
func TestReasons(t *testing.T) {
	for what := range reasons {
		if !slices.ContainsFunc(list, func(t target) bool { return t.what == what }) {
			t.Errorf("there is no target %q", what)
		}
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 7.25: "7.25", 72.54: "72.5", 725.4: "725", 1234.4: "1,234",
		1234567: "1,234,567", -1234.4: "-1,234",
	} {
		if got := amount(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		1. / 12: "1/12", 1. / 3.52: "1/3.5", 1. / 1513: "1/1,513", 0.6: "0.60",
		1.8: "1.80", 45.25: "45.2", 150: "150",
	} {
		if got := ratio(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}
