package e2e

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

const (
	quantilesSeconds = 40
	quantilesCalls   = 10 // in each second
)

// took holds the durations of the calls of [TestQuantiles], in some order: the second slowest differs from second to
// second.
func took(second int64, call int) time.Duration {
	slow := []time.Duration{7, 13, 30, 60, 120}[second%5]
	switch call {
	case 3, 5:
		return slow * time.Millisecond
	}
	return time.Duration(1+call) * 300 * time.Microsecond
}

// A quantile is an expression for a quantile of one second, evaluated at the end of the second, which is the time of
// the buckets.
type quantile struct {
	expression string
	right      func(s *server) bool // the servers with a right result
}

var (
	everywhere = func(*server) bool { return true }
	quantiles  = []quantile{
		{
			`histogram_quantile(0.9, sum by (le) (last_over_time(B[999ms]) - last_over_time(B[999ms] offset 1s)))`,
			everywhere,
		},
		{
			// The range has two samples. Prometheus before 3.0 includes both ends of the range, and would find three
			// samples in 2s.
			`histogram_quantile(0.9, sum by (le) (rate(B[1s999ms])))`,
			func(s *server) bool { return !s.isVictoria },
		},
		{
			// VictoriaMetrics also uses the sample before the range.
			`histogram_quantile(0.9, sum by (le) (rate(B[999ms])))`,
			func(s *server) bool { return s.isVictoria },
		},
		{
			`histogram_quantile(0.9, sum by (le) (rate(B[2s])))`,
			func(s *server) bool { return s.name == "prometheus-3" },
		},
	}
)

// TestQuantiles has the servers read the response times of each second: their p99, and the histogram, which gives other
// quantiles of a second.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), []string{"checkout"}, collector.Options{})
	p.takes = took
	p.calls = func(int, int64) count { return count{pass: quantilesCalls} }
	begin := p.second
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, seconds, l, seconds.ConnState)
	read := job{
		name: "classic", path: secondsPath, targets: []string{l.Addr().String()},
		interval: 5 * time.Second, histogram: "classic",
	}
	servers := startServers(t, read)
	p.live(func() bool { return p.second < begin+quantilesSeconds })

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			const p99 = "windowstat_persecond_rt_p99_seconds"
			await(t, s, p99, p.second, deadline)
			for _, v := range s.query(t, p99+"[5m]")[0].Values {
				if want := slowest(v.at / 1000); math.Abs(v.value-want) > want*0.09 {
					t.Errorf("the p99 of second %d is %v; it should be %v", v.at/1000-begin, v.value, want)
				}
			}
			checkCounters(t, s)
			bounds := checkBuckets(t, s, begin, p.second)
			for _, q := range quantiles {
				q.check(t, s, bounds, begin, p.second)
			}
		})
	}
}

// slowest returns the duration of the slowest call of a second, in seconds.
func slowest(second int64) (most float64) {
	for call := range quantilesCalls {
		most = max(most, took(second, call).Seconds())
	}
	return most
}

// within returns the number of calls of a second that took at most bound seconds.
func within(second int64, bound float64) (n float64) {
	for call := range quantilesCalls {
		if took(second, call).Seconds() <= bound {
			n++
		}
	}
	return n
}

// checkBuckets compares each bucket with the number of calls within its bound, second by second, and returns the
// bounds.
func checkBuckets(t *testing.T, s *server, begin, end int64) (bounds []float64) {
	t.Helper()
	for _, x := range s.query(t, "windowstat_persecond_rt_seconds_bucket[5m]") {
		bound, err := strconv.ParseFloat(x.Metric["le"], 64)
		if err != nil {
			t.Fatal(err)
		}
		bounds = append(bounds, bound)
		found := map[int64]float64{}
		for _, v := range x.Values {
			found[v.at/1000] = v.value
		}
		sum := 0.0
		for second := begin; second < end; second++ {
			sum += within(second, bound)
			if got, ok := found[second+1]; got != sum || !ok {
				t.Errorf("%v calls up to the end of second %d took at most %v s; it should be %v",
					got, second-begin, bound, sum)
				break // the later ones are wrong, too
			}
		}
		if len(found) != len(x.Values) || len(found) != quantilesSeconds {
			t.Errorf("the bucket %v has %d samples of %d seconds", bound, len(x.Values), len(found))
		}
	}
	slices.Sort(bounds)
	if len(bounds) < 10 {
		t.Errorf("there are only the buckets %v", bounds)
	}
	return bounds
}

// check evaluates the expression at the end of each second except the first two. The result must be right on the
// servers that the field right accepts, and only there. The first second has no sample before it. In the second one,
// Prometheus assumes that a bucket began at zero if it grew by more than its value. It then extrapolates the rate of
// this bucket less than the rates of the other buckets, and a quantile of the rates is wrong.
func (q quantile) check(t *testing.T, s *server, bounds []float64, begin, end int64) {
	t.Helper()
	wrong := []string(nil)
	for second := begin + 2; second < end; second++ {
		want := estimate(second, bounds, 0.9)
		expression := replaceBuckets(q.expression)
		if got := s.valueAt(t, expression, float64(second+1)); math.Abs(got-want) > 1e-6 {
			wrong = append(wrong, fmt.Sprintf("second %d: %v, it should be %v", second-begin, got, want))
		}
	}
	if right := len(wrong) == 0; right != q.right(s) {
		t.Errorf("%s: right is %t: %q", q.expression, right, wrong)
	}
}

func replaceBuckets(expression string) string {
	return strings.ReplaceAll(expression, "B[", "windowstat_persecond_rt_seconds_bucket[")
}

// estimate returns the estimate of a quantile of a second by its buckets, with the calls spread evenly within each
// bucket.
func estimate(second int64, bounds []float64, q float64) float64 {
	lower, below := 0.0, 0.0
	for _, upper := range bounds {
		n := within(second, upper)
		if rank := q * quantilesCalls; n >= rank {
			return lower + (upper-lower)*(rank-below)/(n-below)
		}
		lower, below = upper, n
	}
	return lower
}
