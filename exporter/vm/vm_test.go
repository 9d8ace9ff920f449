package vm_test

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/vm"
)

const ms = time.Millisecond

func newCollector(t *testing.T) (*collector.Collector, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return c, &now
}

// A set has windowstat's metrics and others, and all histograms use vmrange.
func TestInASet(t *testing.T) {
	c, now := newCollector(t)
	for _, rt := range []time.Duration{0, 3 * ms, 3 * ms, 20 * ms, 5 * time.Second} {
		e := c.Resource(`a"b`).Enter()
		*now = now.Add(rt)
		e.Exit(nil)
	}
	w, err := vm.New(c, vm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := metrics.NewSet()
	set.NewCounter("theirs_total").Inc()
	set.RegisterMetricsWriter(w.WriteMetrics)
	for range 2 {
		var b bytes.Buffer
		set.WritePrometheus(&b)
		var counted, last float64
		for line := range strings.Lines(b.String()) {
			rest, ok := strings.CutPrefix(line, `windowstat_rt_seconds_bucket{resource="a\"b",vmrange="`)
			if !ok {
				continue
			}
			bounds, n, _ := strings.Cut(rest, `"} `)
			low, high, _ := strings.Cut(bounds, "...")
			lower, err1 := strconv.ParseFloat(low, 64)
			upper, err2 := strconv.ParseFloat(high, 64)
			count, err3 := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err1 != nil || err2 != nil || err3 != nil || lower < last || upper <= lower {
				t.Errorf("%s: after %v: %v %v %v", line, last, err1, err2, err3)
			}
			if last = upper; lower > 0 && math.Abs(upper/lower-1.0905) > 0.002 {
				t.Errorf("%s is %v wide", line, upper/lower)
			}
			counted += count
		}
		if counted != 5 {
			t.Errorf("%v calls in ranges", counted)
		}
		for _, line := range []string{
			"theirs_total 1\n", `windowstat_pass_total{resource="a\"b"} 5` + "\n",
			`windowstat_rt_seconds_count{resource="a\"b"} 5` + "\n",
			`windowstat_rt_seconds_sum{resource="a\"b"} 5.026` + "\n", "# TYPE windowstat_pass_total counter\n",
		} {
			if strings.Count(b.String(), line) != 1 {
				t.Errorf("no %s in\n%s", line, b.String())
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	c, _ := newCollector(t)
	if _, err := vm.New(c, vm.Options{Namespace: "1", By: "x"}); err == nil || strings.Count(err.Error(), "\n") != 1 ||
		!strings.HasPrefix(err.Error(), "vm: ") {
		t.Error(err)
	}
}
