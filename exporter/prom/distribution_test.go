package prom_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

const wantsProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// The histogram of a second covers all calls up to the end of the second, and has the time of that end.
func TestHistogramOfSeconds(t *testing.T) {
	c, now := service(t, collector.Options{Windows: node.Options{Bounds: []time.Duration{5 * ms, time.Second}}})
	r := c.Resource("a")
	for _, rts := range [][]time.Duration{{4 * ms, 6 * ms}, {}, {2 * time.Second}} {
		start := *now
		for _, rt := range rts {
			e := r.Enter()
			*now = now.Add(rt)
			e.Exit(nil)
		}
		*now = start.Add(max(now.Sub(start).Truncate(time.Second), 0) + time.Second)
	}
	const want = `# HELP windowstat_persecond_rt_p99_seconds 99th percentile of the response times of the calls ` +
		`that ended in this second, to within 9%. Absent if no call ended or the histogram is no longer kept.
# TYPE windowstat_persecond_rt_p99_seconds gauge
windowstat_persecond_rt_p99_seconds{resource="a"} 0.006 1767323045000
windowstat_persecond_rt_p99_seconds{resource="a"} 2 1767323049000
# HELP windowstat_persecond_rt_seconds Response times of all calls that ended before the end of this second.
# TYPE windowstat_persecond_rt_seconds histogram
`
	points := ""
	for _, p := range []struct {
		end  int
		five int
		one  int
		all  int
		sum  string
	}{
		{46, 1, 2, 2, "0.01"},
		{47, 1, 2, 2, "0.01"},
		{48, 1, 2, 2, "0.01"},
		{49, 1, 2, 2, "0.01"},
		{50, 1, 2, 3, "2.01"},
	} {
		stamp := fmt.Sprintf("17673230%d000", p.end)
		points += fmt.Sprintf(`windowstat_persecond_rt_seconds_bucket{resource="a",le="0.005"} %d %s
windowstat_persecond_rt_seconds_bucket{resource="a",le="1"} %d %s
windowstat_persecond_rt_seconds_bucket{resource="a",le="+Inf"} %d %s
windowstat_persecond_rt_seconds_sum{resource="a"} %s %s
windowstat_persecond_rt_seconds_count{resource="a"} %d %s
`, p.five, stamp, p.one, stamp, p.all, stamp, p.sum, stamp, p.all, stamp)
	}
	read := newScraper(t, c, prom.SecondsOptions{})
	if got := read.get("histogram=classic&metric=persecond_rt_p99_seconds").Body.String(); got != want+points {
		t.Errorf("got\n%s\nwant\n%s", got, want+points)
	}
}

// askNative requests a page in protobuf and returns the histograms of its families by resource and second; "" is the
// total.
func askNative(t *testing.T, page http.Handler, query string) map[string]map[string]map[int64]*dto.Metric {
	t.Helper()
	r := httptest.NewRequest("GET", "/?histogram=native&"+query, nil)
	r.Header.Set("Accept", wantsProtobuf)
	rec := httptest.NewRecorder()
	page.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, rec.Code, rec.Body)
	}
	all := map[string]map[string]map[int64]*dto.Metric{}
	for body := bufio.NewReader(rec.Body); ; {
		var f dto.MetricFamily
		if err := protodelim.UnmarshalFrom(body, &f); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		want := dto.MetricType_GAUGE
		if strings.HasSuffix(f.GetName(), "rt_distribution_seconds") {
			want = dto.MetricType_GAUGE_HISTOGRAM
		}
		if f.GetType() != want {
			t.Fatalf("%s is a %v", f.GetName(), f.GetType())
		}
		of := map[string]map[int64]*dto.Metric{}
		for _, m := range f.Metric {
			resource := ""
			for _, l := range m.Label {
				resource = l.GetValue()
			}
			if of[resource] == nil {
				of[resource] = map[int64]*dto.Metric{}
			}
			of[resource][m.GetTimestampMs()/1000] = m
		}
		all[f.GetName()] = of
	}
}

// buckets returns the non-empty buckets of a native histogram by index.
func buckets(h *dto.Histogram) map[int]int64 {
	all := map[int]int64{}
	index, n, deltas := 0, int64(0), h.PositiveDelta
	for _, span := range h.PositiveSpan {
		index += int(span.GetOffset())
		for range span.GetLength() {
			if n += deltas[0]; n != 0 {
				all[index] = n
			}
			deltas = deltas[1:]
			index++
		}
	}
	return all
}

// observed returns the histogram of client_golang for the given response times.
func observed(t *testing.T, rts []time.Duration) *dto.Histogram {
	t.Helper()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", NativeHistogramBucketFactor: 1.1})
	for _, rt := range rts {
		h.Observe(rt.Seconds())
	}
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Histogram
}

// For every window, the native histogram of a second equals the histogram that client_golang computes from the response
// times of the second: for each resource over all callers, and for all inbound traffic. It agrees with the other
// metrics of the second. A histogram that has left the history is absent.
func TestNativeHistogramOfSeconds(t *testing.T) {
	const kept = 90
	c, now := service(t, collector.Options{Windows: node.Options{Histograms: kept * time.Second}})
	random := rand.New(rand.NewPCG(1, 2))
	truth := map[string]map[int64][]time.Duration{"a": {}, "b": {}, "": {}}
	began := now.Unix()
	for range 150 {
		second, spent := now.Unix(), time.Duration(0)
		for range random.IntN(7) {
			name := []string{"a", "b"}[random.IntN(2)]
			_, e, err := c.Enter(
				t.Context(),
				name,
				collector.Origin(fmt.Sprint(random.IntN(3))),
				collector.Inbound(),
			) // several leaves
			if err != nil {
				t.Fatal(err)
			}
			rt := time.Duration(math.Exp(random.Float64()*18) - 1) // from 0 to 65 ms
			if spent += rt; spent >= time.Second {
				t.Fatal("the calls took longer than the second")
			}
			*now = now.Add(rt)
			e.Exit(nil)
			truth[name][second] = append(truth[name][second], rt)
			truth[""][second] = append(truth[""][second], rt)
		}
		*now = time.Unix(second+1, 0).UTC()
	}
	end := now.Unix()
	page := newScraper(t, c, prom.SecondsOptions{}).page
	for query, points := range map[string]int{"window=5s": 5, "window=1m": 60, "window=2m": kept, "cursor=x": kept} {
		all := askNative(t, page, query)
		for name, seconds := range truth {
			prefix := "windowstat_persecond_"
			if name == "" {
				prefix += "inbound_"
			}
			got := all[prefix+"rt_distribution_seconds"][name]
			if len(got) != points {
				t.Errorf("%s: %q has %d histograms, want %d", query, name, len(got), points)
			}
			for unix, m := range got {
				h, want := m.GetHistogram(), observed(t, seconds[unix])
				if unix < end-int64(points) || !maps.Equal(buckets(h), buckets(want)) ||
					h.GetZeroCount() != want.GetZeroCount() ||
					h.GetSampleCount() != want.GetSampleCount() ||
					h.GetSchema() != want.GetSchema() ||
					h.GetZeroThreshold() != want.GetZeroThreshold() ||
					math.Abs(h.GetSampleSum()-want.GetSampleSum()) > 1e-9 {
					t.Fatalf("%s: %q in second %d: %v, want %v", query, name, unix-began, h, want)
				}
				complete := all[prefix+"complete"][name][unix].GetGauge()
				sum := all[prefix+"rt_sum_seconds"][name][unix].GetGauge()
				if complete.GetValue() != float64(h.GetSampleCount()) || sum.GetValue() != h.GetSampleSum() {
					t.Fatalf(
						"%s: %q in second %d: %v, want %v calls of %v s",
						query,
						name,
						unix-began,
						h,
						complete,
						sum,
					)
				}
			}
		}
	}
	if got := askNative(t, page, "window=5s&metric=persecond_pass"); len(got) != 4 {
		t.Errorf("%d families, want the passes, the run, and the histograms of resources and of the total", len(got))
	}
	read := func(query, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/?"+query, nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, r)
		return rec
	}
	if rec := read("histogram=native", "text/plain"); rec.Code != http.StatusNotAcceptable {
		t.Errorf("client without protobuf: %d %s", rec.Code, rec.Body)
	}
	if rec := read("histogram=x", ""); rec.Code != http.StatusBadRequest {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// At most ten pages are computed at a time. Every request gets a page, and no page is older than its request.
func TestManyConcurrentRequests(t *testing.T) {
	c, now := service(t, collector.Options{})
	c.Resource("a").Block("")
	*now = now.Add(10 * time.Second)
	var computing, most, pages atomic.Int64
	c.Publish(collector.Metric{Name: "probe", Help: "A value that takes long.", Value: func() float64 {
		n := computing.Add(1)
		defer computing.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return float64(pages.Add(1))
	}})
	seconds := newScraper(t, c, prom.SecondsOptions{}).page
	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	value := regexp.MustCompile(`(?m)^windowstat_probe (\d+)$`)
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			w, before := httptest.NewRecorder(), pages.Load()
			r := httptest.NewRequest("GET", fmt.Sprint("/?cursor=", i%50), nil)
			if i%2 == 1 {
				seconds.ServeHTTP(w, r)
			} else {
				metrics.ServeHTTP(w, r)
				if m := value.FindStringSubmatch(w.Body.String()); m == nil {
					t.Error("the page has no probe metric")
				} else if n, _ := strconv.ParseInt(m[1], 10, 64); n <= before {
					t.Errorf("page %s was served to a request that arrived after page %d", m[1], before)
				}
			}
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > 10 {
		t.Errorf("%d pages computed concurrently", n)
	}
	if n := pages.Load(); n > 450 {
		t.Errorf("%d pages for 500 requests; waiting requests must share a page", n)
	}
}

// A window with more samples than a response may have is rejected; the default window is shortened.
func TestWindowsAreBounded(t *testing.T) {
	c, now := service(t, collector.Options{})
	for i := range 10 {
		c.Resource(fmt.Sprint(i)).Enter() // never idle
	}
	*now = now.Add(100 * time.Second)
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: 110})
	for query, want := range map[string]int{
		"window=11s&metric=persecond_pass":            400,
		"window=10s&metric=persecond_pass":            200,
		"window=55s&metric=persecond_pass&resource=1": 200,
		"window=1s": 200,
		"window=2s": 400,
	} {
		if rec := read.get(query); rec.Code != want {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
	if got := read.seconds("metric=persecond_pass", "persecond_pass"); len(got) != 100 {
		t.Errorf("%d samples", len(got))
	}
}
