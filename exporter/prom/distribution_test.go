package prom_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

const wantsProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// The histogram of a second is that of all calls up to its end, and has the time of its end.
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
	const want = `# HELP windowstat_persecond_rt_p99_seconds Response time that 99% of the calls that ended in this second did not exceed, to 9%; none if no call ended, or the second was over a minute ago.
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
	}{{46, 1, 2, 2, "0.01"}, {47, 1, 2, 2, "0.01"}, {48, 1, 2, 2, "0.01"}, {49, 1, 2, 2, "0.01"}, {50, 1, 2, 3, "2.01"}} {
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

// Whatever the window, each point of the native histogram is what all seconds before it add up to.
func TestNativeHistogramOfSeconds(t *testing.T) {
	c, now := service(t, collector.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	truth := map[int64]uint64{} // by Unix time of the second's end
	total := uint64(0)
	for range 100 {
		for range random.IntN(5) {
			_, e, err := c.Enter(t.Context(), "a", collector.Origin(fmt.Sprint(random.IntN(3)))) // several leaves
			if err != nil {
				t.Fatal(err)
			}
			*now = now.Add(time.Duration(random.IntN(int(100 * ms))))
			e.Exit(nil)
			total++
		}
		*now = now.Truncate(time.Second).Add(time.Second)
		truth[now.Unix()] = total
	}
	read := newScraper(t, c, prom.SecondsOptions{})
	ask := func(query, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/?"+query, nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		read.page.ServeHTTP(rec, r)
		return rec
	}
	for query, points := range map[string]int{"window=5s": 5, "window=1m": 60, "window=90s": 60, "cursor=x": 60} {
		rec := ask(query+"&histogram=native&metric=persecond_pass", wantsProtobuf)
		body := bufio.NewReader(rec.Body)
		n := 0
		for {
			var f dto.MetricFamily
			if err := protodelim.UnmarshalFrom(body, &f); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if f.GetName() != "windowstat_persecond_rt_seconds" {
				continue
			}
			for _, m := range f.Metric {
				h := m.GetHistogram()
				var sum, last int64
				for _, d := range h.PositiveDelta {
					last += d
					sum += last
				}
				if want := truth[m.GetTimestampMs()/1000]; h.GetSampleCount() != want || uint64(sum)+h.GetZeroCount() != want {
					t.Errorf("%s: %d at %d, in buckets %d, want %d", query, h.GetSampleCount(), m.GetTimestampMs(), sum, want)
				}
				n++
			}
		}
		if n != points {
			t.Errorf("%s: %d points, want %d", query, n, points)
		}
	}
	if rec := ask("histogram=native", "text/plain"); rec.Code != http.StatusNotAcceptable {
		t.Errorf("for a client without protobuf: %d %s", rec.Code, rec.Body)
	}
	if rec := ask("histogram=x", ""); rec.Code != http.StatusBadRequest {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// At most ten pages are computed at a time, and every request gets one, which is no older than the request.
func TestThousandRequestsAtOnce(t *testing.T) {
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
					t.Error("a page without the metric")
				} else if n, _ := strconv.ParseInt(m[1], 10, 64); n <= before {
					t.Errorf("page %s was served to a request that came when there were %d", m[1], before)
				}
			}
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > 10 {
		t.Errorf("%d pages at a time", n)
	}
	if n := pages.Load(); n > 450 {
		t.Errorf("%d pages for 500 requests: those that wait share one", n)
	}
}

// A window with more samples than a response may have is rejected; the default window is cut.
func TestWindowsAreBounded(t *testing.T) {
	c, now := service(t, collector.Options{})
	for i := range 10 {
		c.Resource(fmt.Sprint(i)).Enter() // never idle
	}
	*now = now.Add(100 * time.Second)
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: 100})
	for query, want := range map[string]int{
		"window=11s&metric=persecond_pass": 400, "window=10s&metric=persecond_pass": 200, "window=100s&metric=persecond_pass&resource=1": 200, "window=1s": 200,
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
