package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

const (
	distributionsSeconds = 20
	distributionsTargets = 5
	distributionsCalls   = 9 // calls of each target in each second
)

// The sum of the histograms of all targets in one second, without samples of other seconds. Prometheus 2.42 has no
// last_over_time for histograms, and a selector alone would continue to find the last second of a target that has
// vanished.
const (
	sumOfNative = `sum(last_over_time(windowstat_persecond_rt_distribution_seconds{resource="checkout"}[999ms]))`
	sumOn242    = `sum(windowstat_persecond_rt_distribution_seconds{resource="checkout"} and ` +
		`last_over_time(windowstat_persecond_complete{resource="checkout"}[999ms]))`
	sumOfRanges = `sum by (vmrange) ` +
		`(last_over_time(windowstat_persecond_rt_distribution_seconds_bucket{resource="checkout"}[999ms]))`
)

// quantileOf returns the documented query for a quantile of one second.
func quantileOf(q float64, sum string) string {
	return fmt.Sprintf("histogram_quantile(%v, %s)", q, sum)
}

// of returns an expression for one job.
func of(expression, job string) string {
	return strings.ReplaceAll(expression, `{resource=`, fmt.Sprintf(`{job=%q,resource=`, job))
}

// spread returns the duration of a call of a target: from 0.1 ms to 50 ms. One call in eight takes no time. No two
// durations are equal.
func spread(target int, second int64, call int) time.Duration {
	if call == 0 {
		return 0
	}
	mixed := uint64(second)*1_000_003 + uint64(target)*7919 + uint64(call)*104_729
	mixed = (mixed ^ mixed>>13) * 0x9e3779b97f4a7c15
	share := float64(mixed>>11) / (1 << 53)
	return time.Duration(1e5 * math.Pow(500, share))
}

// raw returns the response times of all targets in a second, in seconds, ascending.
func raw(second int64) (rts []float64) {
	for target := range distributionsTargets {
		for call := range distributionsCalls {
			rts = append(rts, spread(target, second, call).Seconds())
		}
	}
	slices.Sort(rts)
	return rts
}

// zeroBucket is the bucket of response times of 0.
const zeroBucket = math.MinInt

// bucketOf returns the bucket of a response time: the lowest power of the eighth root of two that is at least the
// response time.
func bucketOf(rt float64) int {
	if rt == 0 {
		return zeroBucket
	}
	return int(math.Ceil(math.Log2(rt) * 8))
}

// bucketTo returns the bucket with an upper bound, which may be rounded. The upper bound of the zero bucket is below a
// nanosecond.
func bucketTo(t *testing.T, upper string) int {
	t.Helper()
	v, err := strconv.ParseFloat(upper, 64)
	if err != nil {
		t.Fatal(err)
	}
	if v < 1e-9 {
		return zeroBucket
	}
	return int(math.Round(math.Log2(v) * 8))
}

// spreadIn returns the distribution of the calls of a second: the number of calls in each bucket, and the sum of the
// durations.
func spreadIn(second int64) (buckets map[int]float64, sum float64) {
	buckets = map[int]float64{}
	for _, rt := range raw(second) {
		buckets[bucketOf(rt)]++
		sum += rt
	}
	return buckets, sum
}

// checkQuantiles compares quantiles of a second with the quantiles of its response times. Both must be in the same
// bucket.
func checkQuantiles(t *testing.T, s *server, sum string, second int64) {
	t.Helper()
	rts := raw(second)
	for _, q := range []float64{0.5, 0.9, 0.99} { // with 45 calls, each quantile is a call and not between two calls
		want := rts[int(math.Ceil(q*float64(len(rts))))-1]
		upper := math.Exp2(float64(bucketOf(want)) / 8)
		const rounded = 1.001 // as VictoriaMetrics' bounds are
		if got := s.valueAt(t, quantileOf(q, sum), float64(second)); got > upper*rounded ||
			got < upper*math.Exp2(-1./8)/rounded {
			t.Errorf("the quantile %v of second %d is %v, want one in the bucket up to %v, where %v is",
				q, second, got, upper, want)
		}
	}
}

// TestHistogramsOfSeconds has servers that scrape or receive the histograms of five instances. A quantile over all
// instances in one second must be in the same bucket as the quantile of their response times in this second.
func TestHistogramsOfSeconds(t *testing.T) {
	t.Parallel()
	second := time.Now().Unix()
	var instances []*paced
	var addresses []string
	for target := range distributionsTargets {
		p := newPaced(t, time.Unix(second, 0), []string{"checkout"}, collector.Options{})
		p.calls = func(int, int64) count { return count{pass: distributionsCalls} }
		p.takes = func(second int64, call int) time.Duration { return spread(target, second, call) }
		page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t, "127.0.0.1:0")
		serve(t, page, l, page.ConnState)
		instances, addresses = append(instances, p), append(addresses, l.Addr().String())
	}
	read := job{name: "scraped", path: secondsPath, targets: addresses, interval: 5 * time.Second, histogram: "native"}
	new3 := startServer(t, "prometheus-3", prometheus3, read)
	old := prepareServer(t, "prometheus-2", prometheus2, read)
	old.configure(t, strings.ReplaceAll(old.config([]job{read}), "  scrape_native_histograms: true\n", ""))
	old.args = append(old.args, "--enable-feature=native-histograms")
	old.start(t)
	vm := startServer(t, "victoria", victoria)

	var stops []func() error
	for target, p := range instances {
		for _, s := range []*server{new3, old, vm} {
			w, err := push.New(p.stats, push.Options{
				URL:    "http://" + s.addr + "/api/v1/write",
				Labels: map[string]string{"job": "pushed", "instance": fmt.Sprint(target)}, Histogram: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, w.Start())
		}
		w, err := push.New(p.stats, push.Options{
			Format: push.VictoriaMetrics,
			URL:    "http://" + vm.addr + "/api/v1/import/prometheus",
			Labels: map[string]string{"job": "text", "instance": fmt.Sprint(target)}, Histogram: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, w.Start())
	}
	next := time.Now()
	for range distributionsSeconds {
		for _, p := range instances {
			p.tick()
		}
		next = next.Add(time.Second)
		time.Sleep(time.Until(next))
	}
	end := second + distributionsSeconds
	deadline := time.Now().Add(catchUp)
	for _, way := range []struct {
		s        *server
		job, sum string
	}{
		{new3, "scraped", sumOfNative},
		{new3, "scraped", sumOn242},
		{new3, "pushed", sumOfNative},
		{old, "scraped", sumOn242},
		{old, "pushed", sumOn242},
		{vm, "pushed", sumOfRanges},
		{vm, "text", sumOfRanges},
	} {
		t.Run(way.s.name+" "+way.job, func(t *testing.T) {
			for target := range distributionsTargets {
				instance := fmt.Sprint(target)
				if way.job == "scraped" {
					instance = addresses[target]
				}
				await(t, way.s, fmt.Sprintf(`windowstat_persecond_pass{job=%q,instance=%q}`, way.job, instance), end,
					deadline)
			}
			if way.s.isVictoria { // VictoriaMetrics has a series for each bucket, and shows them at different times
				calls := values{"": {}}
				for at := second; at < end; at++ {
					calls[""][at] = distributionsTargets * distributionsCalls
				}
				all := strings.Replace(of(way.sum, way.job), " by (vmrange)", "", 1)
				checkSamples(t, way.s, all+"[5m:1s]", calls, end)
			}
			for at := second; at < end; at++ {
				if way.s.isVictoria {
					checkRanges(t, way.s, way.job, at)
				} else {
					checkNativeSecond(t, way.s, of(way.sum, way.job), at)
				}
			}
		})
	}
	var wg sync.WaitGroup
	for _, stop := range stops {
		wg.Go(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// checkNativeSecond compares the sum of the native histograms of a second with its response times.
func checkNativeSecond(t *testing.T, s *server, sum string, second int64) {
	t.Helper()
	h := s.histogramAt(t, sum, second)
	buckets, total := spreadIn(second)
	if got := h.byBucket(t); !maps.Equal(got, buckets) {
		t.Errorf("second %d has the buckets %v, want %v", second, got, buckets)
	}
	if h.Count != fmt.Sprint(distributionsTargets*distributionsCalls) {
		t.Errorf("second %d has %q calls", second, h.Count)
	}
	if got, err := strconv.ParseFloat(h.Sum, 64); err != nil || math.Abs(got-total) > 1e-9 {
		t.Errorf("the sum of second %d is %q, want %v", second, h.Sum, total)
	}
	checkQuantiles(t, s, sum, second)
}

// checkRanges is checkNativeSecond for VictoriaMetrics, which has a series for each bucket that is not empty.
func checkRanges(t *testing.T, s *server, job string, second int64) {
	t.Helper()
	sum := of(sumOfRanges, job)
	buckets, total := spreadIn(second)
	got := map[int]float64{}
	for _, x := range s.queryAt(t, sum, float64(second)) {
		_, upper, _ := strings.Cut(x.Metric["vmrange"], "...")
		got[bucketTo(t, upper)] += x.Value.value
	}
	if !maps.Equal(got, buckets) {
		t.Errorf("second %d has the ranges %v, want %v", second, got, buckets)
	}
	for part, want := range map[string]float64{"count": distributionsTargets * distributionsCalls, "sum": total} {
		expression := strings.NewReplacer(" by (vmrange)", "", "_bucket", "_"+part).Replace(sum)
		if got := s.valueAt(t, expression, float64(second)); math.Abs(got-want) > 1e-9 {
			t.Errorf("second %d: %s is %v, want %v", second, expression, got, want)
		}
	}
	checkQuantiles(t, s, sum, second)
}

// nativeHistogram is a native histogram in a response of Prometheus.
type nativeHistogram struct {
	Count, Sum string
	Buckets    [][]any // kind of bounds, lower, upper, count
}

// byBucket returns the counts of the buckets.
func (h *nativeHistogram) byBucket(t *testing.T) map[int]float64 {
	t.Helper()
	all := map[int]float64{}
	for _, b := range h.Buckets {
		n, err := strconv.ParseFloat(b[3].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		all[bucketTo(t, b[2].(string))] += n
	}
	return all
}

// histogramAt evaluates an expression with a single histogram as its result.
func (s *server) histogramAt(t *testing.T, expression string, at int64) (h nativeHistogram) {
	t.Helper()
	body, err := s.get("/api/v1/query", url.Values{"query": {expression}, "time": {strconv.FormatInt(at, 10)}})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Result []struct{ Histogram []json.RawMessage }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if r := answer.Data.Result; len(r) != 1 || len(r[0].Histogram) != 2 {
		t.Errorf("%s: %s at %d: %s", s.name, expression, at, body)
		return h
	}
	if err := json.Unmarshal(answer.Data.Result[0].Histogram[1], &h); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return h
}
