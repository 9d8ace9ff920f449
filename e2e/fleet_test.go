package e2e

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// When what happens in the run of [TestExpressions], in seconds from its beginning.
const (
	firstPeak  = 19 // the last second of the target that vanishes, and its busiest
	vanish     = 28 // when all servers have read that
	secondPeak = 35 // the busiest second of the other
	fleetEnd   = 50
)

const fleetMetric = `windowstat_persecond_pass{resource="checkout"}`

// TestExpressions has the servers read two targets, of which one vanishes in the middle of the run, and asks them about
// seconds before that and after it.
func TestExpressions(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	stays := newTarget(t, begin, func(k int64) count {
		if k == secondPeak {
			return count{450, 90}
		}
		return count{20 + int(k%7), int(k % 3)}
	})
	vanishes := newTarget(t, begin, func(k int64) count {
		if k == firstPeak {
			return count{400, 2}
		}
		return count{30 + int(k%5), int(k % 4)}
	})
	servers := startServers(t, job{
		name: "fleet", path: secondsPath, targets: []string{stays.addr, vanishes.addr}, interval: 5 * time.Second,
	})
	// Its clock stops where its last second has ended: it is gone before there is another, but after a scrape.
	stays.live(func() bool {
		if k := stays.second - begin.Unix(); k <= firstPeak {
			vanishes.tick()
		} else if k == vanish {
			vanishes.gone()
		}
		return stays.second < begin.Unix()+fleetEnd
	})
	logs := fleet{stays.rows(t), vanishes.rows(t)}
	off := make([]float64, len(expressions)) // how much the naive ones are

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, fleetMetric, stays.second, deadline)
			sums := values{"": {}}
			for second := begin.Unix(); second < stays.second; second++ {
				sums[""][second] = logs.pass(second)
			}
			checkSamples(t, s, "sum(last_over_time("+fleetMetric+"[999ms]))[2m:1s]", sums, stays.second)
			for i, x := range expressions {
				off[i] = max(off[i], x.check(t, s, logs, begin.Unix()))
			}
			checkCounters(t, s)
		})
	}
	for i, x := range expressions {
		if off[i] == 0 {
			t.Errorf("this is always right, too: %s", x.naive)
		}
	}
}

// check evaluates an expression as of some moments of the run, and returns how much the naive one was off, at most.
func (x expression) check(t *testing.T, s *server, f fleet, begin int64) (off float64) {
	t.Helper()
	for _, k := range []int64{17, firstPeak, firstPeak + 1, 25, firstPeak + 10, 34, secondPeak, secondPeak + 1, secondPeak + 10, fleetEnd - 1} {
		want := x.want(f, begin+k)
		for _, part := range []float64{0, 0.5} {
			at := float64(begin+k) + part
			if got := s.valueAt(t, x.right, at); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %v s from the beginning: %s is %v; it should be %v", x.what, float64(k)+part, x.right, got, want)
			}
			off = max(off, math.Abs(s.valueAt(t, x.naive, at)-want))
		}
	}
	t.Logf("off by up to %.4g: %s", off, x.naive)
	return off
}

// valueAt is the answer to an expression as of a Unix time; no answer is 0.
func (s *server) valueAt(t *testing.T, expression string, at float64) float64 {
	t.Helper()
	result := s.queryAt(t, expression, at)
	if len(result) == 0 {
		return 0
	}
	if len(result) > 1 {
		t.Fatalf("%s: %s has %d results", s.name, expression, len(result))
	}
	return result[0].Value.value
}

// A target is paced statistics with a page and a metric log.
type target struct {
	*paced
	addr string
	gone func() // it vanishes
	log  *metriclog.Writer
}

// newTarget makes one that does something in the second k of the run.
func newTarget(t *testing.T, begin time.Time, calls func(k int64) count) *target {
	t.Helper()
	x := &target{paced: newPaced(t, begin, []string{"checkout"}, collector.Options{})}
	x.calls = func(_ int, second int64) count { return calls(second - begin.Unix()) }
	var err error
	x.log, err = metriclog.New(x.stats, metriclog.Options{Dir: t.TempDir(), App: "fleet", Logger: slog.New(slog.DiscardHandler)})
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

// rows is what the metric log has, by Unix second.
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
