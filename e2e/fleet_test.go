package e2e

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

// Times of the events in the run of [TestExpressions], in seconds from its beginning.
const (
	firstPeak  = 19 // the last second of the target that vanishes, and its busiest
	vanish     = 28 // earliest time after all servers have read firstPeak
	secondPeak = 35 // the busiest second of the other target
	fleetEnd   = 50

	// Events before the run. The remaining target exists for longer than any range.
	fleetPast = 660
	pastPeak  = -275 // start of a range of five minutes that a query uses
)

const fleetMetric = `windowstat_persecond_pass{resource="checkout"}`

// TestExpressions runs servers that read two targets. One target vanishes in the middle of the run. The test queries
// seconds before and after this time.
func TestExpressions(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	stays := newTarget(t, begin, fleetPast, func(k int64) count {
		switch {
		case k == secondPeak:
			return count{450, 90}
		case k == pastPeak:
			return count{900, 0}
		case k < 0:
			return count{401 + int(-k%5), 0}
		}
		return count{20 + int(k%7), int(k % 3)}
	})
	vanishes := newTarget(t, begin, 0, func(k int64) count {
		if k == firstPeak {
			return count{400, 2}
		}
		return count{30 + int(k%5), int(k % 4)}
	})
	for stays.second < vanishes.second {
		stays.tick()
	}
	servers := startServers(t, job{
		name: "fleet", path: secondsPath, targets: []string{stays.addr, vanishes.addr}, interval: 5 * time.Second,
	})
	// The clock of the target stops at the end of its last second. The target vanishes before the next second, but
	// after a scrape.
	read := fmt.Sprintf(`windowstat_persecond_pass{resource="checkout",instance=%q}`, vanishes.addr)
	gone, due := false, time.Now().Add(catchUp)
	stays.live(func() bool {
		if k := stays.second - begin.Unix(); k <= firstPeak {
			vanishes.tick()
		} else if k >= vanish && !gone {
			for _, s := range servers {
				await(t, s, read, vanishes.second, due)
			}
			vanishes.gone()
			gone = true
		}
		return stays.second < begin.Unix()+fleetEnd
	})
	logs := fleet{stays.addr: stays.rows(t), vanishes.addr: vanishes.rows(t)}
	all := slices.Concat(expressions, ofTargets)
	off := make([]float64, len(all)) // errors of the naive expressions

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, fleetMetric, stays.second, deadline)
			sums := values{"": {}}
			for second := begin.Unix() - fleetPast; second < stays.second; second++ {
				sums[""][second] = logs.pass(second)
			}
			checkSamples(t, s, "sum(last_over_time("+fleetMetric+"[999ms]))[15m:1s]", sums, stays.second)
			for i, x := range all {
				if i < len(expressions) {
					off[i] = max(off[i], x.check(t, s, "", logs, begin.Unix()))
					continue
				}
				for addr, rows := range logs {
					off[i] = max(off[i], x.check(t, s, addr, fleet{addr: rows}, begin.Unix()))
				}
			}
			checkCounters(t, s)
		})
	}
	for i, x := range all {
		if off[i] == 0 {
			t.Errorf("this is always right, too: %s", x.naive)
		}
	}
}

// check evaluates an expression at some times of the run, and returns the maximum error of the naive expression. If
// addr is not empty, the fleet is only this target.
func (x expression) check(t *testing.T, s *server, addr string, f fleet, begin int64) (off float64) {
	t.Helper()
	for _, k := range []int64{
		17, firstPeak, firstPeak + 1, 25, firstPeak + 10, 34, secondPeak, secondPeak + 1,
		secondPeak + 10, fleetEnd - 1,
	} {
		want := x.want(f, begin+k)
		for _, part := range []float64{0, 0.5} {
			at := float64(begin+k) + part
			if got := s.valuesAt(t, x.right, at)[addr]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %v s from the beginning: %s is %v; it should be %v", x.what,
					float64(k)+part, x.right, got, want)
			}
			off = max(off, math.Abs(s.valuesAt(t, x.naive, at)[addr]-want))
		}
	}
	t.Logf("off by up to %.4g: %s", off, x.naive)
	return off
}

// valuesAt returns the results of an expression at a Unix time, by target. A missing result is 0.
func (s *server) valuesAt(t *testing.T, expression string, at float64) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for _, x := range s.queryAt(t, expression, at) {
		instance := x.Metric["instance"]
		if _, ok := found[instance]; ok {
			t.Fatalf("%s: %s has several results for %q", s.name, expression, instance)
		}
		found[instance] = x.Value.value
	}
	return found
}

// valueAt returns the result of an expression that has a single one for all targets.
func (s *server) valueAt(t *testing.T, expression string, at float64) float64 {
	t.Helper()
	return s.valuesAt(t, expression, at)[""]
}

// A target holds paced statistics with a page and a metric log.
type target struct {
	*paced
	addr string
	gone func() // makes the target vanish
	log  *metriclog.Writer
}

// newTarget creates a target that makes calls in second k of the run, starting some seconds before the run.
func newTarget(t *testing.T, begin time.Time, past int64, calls func(k int64) count) *target {
	t.Helper()
	x := &target{paced: newPaced(t, time.Unix(begin.Unix()-past, 0), []string{"checkout"}, collector.Options{
		Windows: node.Options{History: 15 * time.Minute},
	})}
	x.calls = func(_ int, second int64) count { return calls(second - begin.Unix()) }
	var err error
	x.log, err = metriclog.New(x.stats,
		metriclog.Options{Dir: t.TempDir(), App: "fleet", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := prom.NewSeconds(x.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	x.addr = l.Addr().String()
	server := serve(t, seconds, l)
	x.gone = func() { _ = server.Close() }
	return x
}

// rows returns the rows of the metric log by Unix second.
func (x *target) rows(t *testing.T) map[int64]metriclog.Row {
	t.Helper()
	if err := x.log.Flush(); err != nil {
		t.Fatal(err)
	}
	files, err := x.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readLog(files)
	if err != nil {
		t.Fatal(err)
	}
	bySecond := map[int64]metriclog.Row{}
	for _, row := range rows {
		bySecond[row.Start.Unix()] = row
	}
	return bySecond
}
