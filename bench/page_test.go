package bench_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/bench"
)

// format is an exposition format and the Accept header that requests it.
type format struct{ name, accept string }

var (
	plainText   = format{"text", "text/plain;version=0.0.4"}
	openMetrics = format{"openmetrics", "application/openmetrics-text;version=1.0.0"}
)

// traffic is the load of the given number of resources in the last minute. A page reads no older seconds.
func traffic(resources int) bench.Traffic {
	return bench.Traffic{Resources: resources, Seconds: 60, Calls: 2}
}

// BenchmarkPage serves the metrics page of 10,000 resources.
func BenchmarkPage(b *testing.B) {
	besidePages(b, bench.Pages(), many, "/metrics", plainText, openMetrics)
}

// BenchmarkRegistry serves the same page from a registry that contains the collector.
func BenchmarkRegistry(b *testing.B) {
	besidePages(b, bench.RegistryPages(), many, "/metrics", plainText)
}

// BenchmarkSecondsPage serves 15 seconds of 1,000 resources, each with its timestamp.
func BenchmarkSecondsPage(b *testing.B) {
	besidePages(b, bench.SecondsPages(), 1000, "/metrics/seconds?"+bench.SecondsQuery, plainText)
}

// besidePages compares windowstat's page with another page, in turns, without gzip. A page takes so long that the state
// of the machine would change between two consecutive benchmarks. Both pages are requested once before, so their
// buffers have reached their final size. They share a heap, and each pays for its own garbage.
func besidePages(b *testing.B, pages []bench.Page, resources int, target string, formats ...format) {
	const atLeast = 3 // turns
	var ours, other http.Handler
	for _, f := range formats {
		b.Run(f.name+"/"+pages[1].Name, func(b *testing.B) {
			if ours == nil {
				ours, other = newPage(b, pages[0], resources), newPage(b, pages[1], resources)
			}
			r := request(target, f)
			size := ask(b, ours, r)
			ask(b, other, r)
			var times, allocations turns
			for b.Loop() {
				for range atLeast {
					ns, n := measure(b, ours, r)
					otherNS, otherN := measure(b, other, r)
					times.add(ns, otherNS)
					allocations.add(n, otherN)
				}
			}
			times.report(b)
			b.ReportMetric(median(allocations.ours), "own-allocs/op")
			b.ReportMetric(median(allocations.other), "other-allocs/op")
			b.ReportMetric(median(allocations.ratio), "allocs-ratio")
			b.ReportMetric(float64(size)/1e6, "MB/page")
		})
	}
}

// measure requests a page, and returns its nanoseconds and allocations.
func measure(b *testing.B, h http.Handler, r *http.Request) (ns, allocations float64) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := bench.Now()
	ask(b, h, r)
	took := bench.Now() - start
	runtime.ReadMemStats(&after)
	return float64(took), float64(after.Mallocs - before.Mallocs)
}

// ask requests a page, and returns its length.
func ask(b *testing.B, h http.Handler, r *http.Request) int64 {
	b.Helper()
	var c client
	h.ServeHTTP(&c, r)
	if c.bytes == 0 || c.status > http.StatusOK {
		b.Fatalf("status %d, %d bytes", c.status, c.bytes)
	}
	return c.bytes
}

func newPage(tb testing.TB, p bench.Page, resources int) http.Handler {
	tb.Helper()
	s, err := bench.NewService(traffic(resources))
	if err != nil {
		tb.Fatal(err)
	}
	h, err := p.New(s)
	if err != nil {
		tb.Fatal(err)
	}
	runtime.GC() // collect the garbage of the setup
	return h
}

func request(target string, f format) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", f.accept)
	return r
}

// client is an http.ResponseWriter that discards everything.
type client struct {
	header http.Header
	status int
	bytes  int64
}

func (c *client) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}

func (c *client) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return len(b), nil
}

func (c *client) WriteHeader(status int) { c.status = status }

// Pages that are compared with each other export the same samples with the same values.
func TestPagesShowTheSame(t *testing.T) {
	const resources = 5
	for name, c := range map[string]struct {
		pages     []bench.Page
		target    string
		perSource int // samples of a resource
	}{
		// Twelve counters and gauges, one block reason, fourteen bounds, the +Inf bucket, sum and count.
		"page":         {bench.Pages(), "/metrics", 12 + 1 + 14 + 1 + 2},
		"registry":     {bench.RegistryPages(), "/metrics", 12 + 1 + 14 + 1 + 2},
		"seconds page": {bench.SecondsPages(), "/metrics/seconds?" + bench.SecondsQuery, 14 * bench.SecondsShown},
	} {
		ours := samples(t, c.pages[0], resources, c.target)
		theirs := samples(t, c.pages[1], resources, c.target)
		for key, v := range ours {
			// The order of addition of the response times differs.
			if w, ok := theirs[key]; !ok || math.Abs(v-w) > 1e-9*math.Abs(v) {
				t.Errorf("%s: %s is %v, beside it %v (%v)", name, key, v, w, ok)
			}
		}
		for key := range theirs {
			if _, ok := ours[key]; !ok {
				t.Errorf("%s: only %s has %s", name, c.pages[1].Name, key)
			}
		}
		if n := len(ours); n != resources*c.perSource {
			t.Errorf("%s: %d samples of resources, want %d", name, n, resources*c.perSource)
		}
	}
}

// samples returns the samples of the resources on a page. An empty label is treated as absent.
func samples(t *testing.T, p bench.Page, resources int, target string) map[string]float64 {
	t.Helper()
	rec := httptest.NewRecorder()
	newPage(t, p, resources).ServeHTTP(rec, request(target, plainText))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for name, f := range families {
		if !strings.HasPrefix(name, "windowstat_") {
			continue
		}
		for _, m := range f.Metric {
			key := fmt.Sprint(name, " ", m.GetTimestampMs())
			for _, l := range m.Label {
				if l.GetValue() != "" {
					key += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
				}
			}
			switch {
			case !strings.Contains(key, " resource="):
			case m.Counter != nil:
				all[key] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[key] = m.Gauge.GetValue()
			default:
				all[key+" sum"], all[key+" count"] = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
				for _, b := range m.Histogram.Bucket {
					all[fmt.Sprint(key, " le=", b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}
