package live

import (
	"context"
	"fmt"
	"maps"
	"runtime/metrics"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Counters are rates per second, even if a measurement is delayed. Values that the machine does not provide are -1.
func TestProcessMeter(t *testing.T) {
	files := func(cpu, throttled, waited, oom int) fstest.MapFS {
		file := func(format string, args ...any) *fstest.MapFile {
			return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
		}
		return fstest.MapFS{
			"proc/self/stat":              file("1 (a) S) S 1 1 1 0 -1 1 1 1 1 1 %d 20 0 0 20 0 1", cpu),
			"proc/self/cgroup":            file("1:cpu:/x\n0::/shop\n"),
			"sys/fs/cgroup/shop/cpu.stat": file("usage_usec 9\nnr_throttled 7\nthrottled_usec %d\n", throttled),
			"sys/fs/cgroup/shop/cpu.pressure": file(
				"some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 total=1\n",
				waited,
			),
			"sys/fs/cgroup/shop/memory.events":   file("low 5\nhigh 0\nmax 3\noom 9\noom_kill %d\n", oom),
			"sys/fs/cgroup/shop/memory.current":  file("123456\n"),
			"sys/fs/cgroup/other/memory.current": file("1\n"),
		}
	}
	whole := files(200, 1000, 2000, 0)
	for name, tc := range map[string]struct {
		before, now fstest.MapFS
		took        time.Duration
		want        string // cpu, throttled, waited, memory events, memory
	}{
		"a second":        {whole, files(250, 1300, 2400, 2), time.Second, "500000 300 400 2 123456"},
		"a delay":         {whole, files(250, 1300, 2400, 2), 1250 * time.Millisecond, "400000 240 320 1 123456"},
		"no cgroup":       {fstest.MapFS{}, fstest.MapFS{}, time.Second, "-1 -1 -1 -1 -1"},
		"a new cgroup":    {fstest.MapFS{}, whole, time.Second, "-1 -1 -1 -1 123456"},
		"a lost cgroup":   {whole, fstest.MapFS{}, time.Second, "-1 -1 -1 -1 -1"},
		"a counter reset": {files(250, 1300, 2400, 2), whole, time.Second, "-1 -1 -1 -1 123456"},
	} {
		p := processMeter{root: tc.before, statistics: func() int64 { return 77 }}
		p.measureSecond(10, 1000, leap.Reading(time.Hour))
		if got := p.after(0); len(got) != 0 {
			t.Errorf("%s: the first measurement already has the row %v", name, got)
		}
		p.root = tc.now
		p.measureSecond(11, 1001, leap.Reading(time.Hour+tc.took))
		p.measureSecond(11, 1001, leap.Reading(2*time.Hour)) // measures nothing again
		got := p.after(1000)
		if len(got) != 1 || len(got[0]) != 1+len(processColumns) || got[0][0] != 1001 {
			t.Fatalf("%s: %v", name, got)
		}
		x := got[0]
		if x[8] != 77 {
			t.Errorf("%s: %v; the statistics have %d bytes, want 77", name, x, x[8])
		}
		if s := fmt.Sprint(x[1], x[2], x[3], x[4], x[6]); s != tc.want || x[5] <= 0 || x[7] <= 0 {
			t.Errorf("%s: %v; cpu, throttled, waited, events and memory are %s, want %s", name, x, s, tc.want)
		}
		p.measureSecond(15, 1005, leap.Reading(3*time.Hour)) // without a measurement of the second before
		if got := p.after(1001); len(got) != 0 {
			t.Errorf("%s: after a gap there is the row %v", name, got)
		}
	}
	// A container may see its own cgroup as the root.
	own := maps.Clone(whole)
	own["sys/fs/cgroup/memory.current"] = &fstest.MapFile{Data: []byte("77\n")}
	delete(own, "sys/fs/cgroup/shop/cpu.stat")
	if got := (&processMeter{root: own, statistics: func() int64 { return 1 }}).measure(0).values[5]; got != 77 {
		t.Errorf("the memory of the container is %d, want 77", got)
	}
}

// deltaQuantile returns the upper bound of a bucket, or the lower one of the last bucket.
func TestDeltaQuantile(t *testing.T) {
	of := func(counts ...uint64) *metrics.Float64Histogram {
		inf := func(sign int) float64 { return float64(sign) * 1e308 * 10 }
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{inf(-1), 0.001, 0.002, inf(1)}}
	}
	for _, tc := range []struct {
		before, now *metrics.Float64Histogram
		q           float64
		want        int64
	}{
		{of(5, 0, 0), of(5, 0, 0), .99, 0},
		{of(5, 0, 0), of(104, 1, 0), .99, 1000},
		{of(5, 0, 0), of(104, 2, 0), .99, 2000},
		{of(5, 7, 0), of(104, 8, 0), 1, 2000},
		{of(5, 7, 1), of(104, 8, 2), 1, 2000},
		{of(5, 7, 1), of(6, 7, 1), 1, 1000},
	} {
		if got := deltaQuantile(tc.before, tc.now, tc.q); got != tc.want {
			t.Errorf(
				"from %v to %v the quantile %v is %d, want %d",
				tc.before.Counts,
				tc.now.Counts,
				tc.q,
				got,
				tc.want,
			)
		}
	}
}

// Without Page.Run, viewers receive the measurements since the first request.
func TestProcessMeterInMessages(t *testing.T) {
	f, _, now := newTestFeed(t, 10)
	v := &viewer{query: query{sortBy: byTrouble}}
	for i, want := range []int{0, 1, 1, 1} {
		*now = now.Add(time.Second)
		if m := f.message(v); len(m.Machine) != want || (m.MachineColumns != nil) != (i == 0) {
			t.Errorf("message %d has the seconds %v, columns %v", i, m.Machine, m.MachineColumns)
		}
	}
	if m := f.message(&viewer{query: v.query}); len(m.Machine) != 3 || m.Machine[2][0] != now.Unix()-1 {
		t.Errorf("another viewer receives %v", m.Machine)
	}
}

// Page.Run measures each second without viewers, so the first viewer receives the history of the process.
func TestProcessIsMeasuredWithoutViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPage(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		m := p.feed.message(&viewer{query: query{sortBy: byTrouble}})
		if n := len(m.Machine); n < 28 {
			t.Errorf("the viewer receives %d seconds of the process", n)
		}
		for i, x := range m.Machine[1:] {
			if x[0] != m.Machine[i][0]+1 {
				t.Errorf("second %d follows %d", x[0], m.Machine[i][0])
			}
		}
	})
}

// A measurement happens once a second in each process that has an Exporter.
func BenchmarkMeasure(b *testing.B) {
	p := processMeter{root: machineRoot}
	for b.Loop() {
		p.measure(0)
	}
}
