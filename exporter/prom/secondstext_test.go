package prom_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// A page of seconds has the same samples as text and in protobuf, with the same values to the last bit, for any
// activity in each second. The text is read by client_golang's parser. As text, the histogram of a second covers all
// calls up to its end; in protobuf it covers the second alone, which is the difference of two histograms in text.
func TestSecondsTextMatchesProtobuf(t *testing.T) {
	const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.9," +
		"text/plain;version=0.0.4;q=0.1"
	seeds := uint64(5)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		c, now := service(t, collector.Options{})
		names := []string{"a", "quo\"te", "back\\slash", "new\nline", ""}
		for range 1000 {
			_, e, err := c.Enter(
				t.Context(),
				names[random.IntN(len(names))],
				collector.StartedAt(now.Add(-time.Duration(random.Int64()>>random.IntN(63)))),
			)
			if err != nil {
				t.Fatal(err)
			}
			*now = now.Add(time.Duration(random.ExpFloat64() * float64(100*ms)))
			if random.IntN(50) > 0 {
				e.Exit(nil)
			}
		}
		*now = now.Add(time.Duration(random.IntN(100)) * time.Second)
		page, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		get := func(histogram, accept string) *bytes.Buffer {
			r := httptest.NewRequest("GET", "/metrics/seconds?window=100s&histogram="+histogram, nil)
			r.Header.Set("Accept", accept)
			rec := httptest.NewRecorder()
			page.ServeHTTP(rec, r)
			return rec.Body
		}
		// Values by name and second; the counts of histograms are separate.
		type values struct {
			gauges map[string]string
			counts map[string]map[int64]uint64
		}
		want, got := values{
			map[string]string{},
			map[string]map[int64]uint64{},
		}, values{
			map[string]string{},
			map[string]map[int64]uint64{},
		}
		add := func(to values, name string, m *dto.Metric) {
			h, unix := m.GetHistogram(), m.GetTimestampMs()/1000
			if h == nil {
				to.gauges[fmt.Sprint(name, " ", unix)] = fmt.Sprint(m.GetGauge().GetValue())
				return
			}
			name = strings.Replace(name, "rt_distribution_seconds", "rt_seconds", 1)
			if to.counts[name] == nil {
				to.counts[name] = map[int64]uint64{}
			}
			to.counts[name][unix] = h.GetSampleCount()
		}
		for name, m := range protobufMetrics(t, get("native", accept)) {
			add(want, name, m)
		}
		// The parser accepts each series once, so it reads the page in parts of one second.
		byTime, types := map[string]string{}, ""
		for line := range strings.Lines(get("classic", "text/plain").String()) {
			if strings.HasPrefix(line, "#") {
				types += line
			} else {
				byTime[line[strings.LastIndexByte(line, ' '):]] += line
			}
		}
		for _, lines := range byTime {
			parser := expfmt.NewTextParser(model.LegacyValidation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(types + lines))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				var b bytes.Buffer
				if err := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim)).Encode(f); err != nil {
					t.Fatal(err)
				}
				for name, m := range protobufMetrics(t, &b) {
					add(got, name, m)
				}
			}
		}
		if !maps.Equal(got.gauges, want.gauges) || len(want.gauges) < 500 {
			t.Errorf("%d samples in text, %d in protobuf", len(got.gauges), len(want.gauges))
			for k, v := range want.gauges {
				if got.gauges[k] != v {
					t.Fatalf("%s is %s, in text %q", k, v, got.gauges[k])
				}
			}
		}
		compared := 0
		for name, counts := range want.counts {
			for unix, n := range counts {
				after, ended := got.counts[name][unix+1]
				if !ended {
					t.Errorf("%s at %d: %d in protobuf, none in text", name, unix, n)
				}
				if before, began := got.counts[name][unix]; began && ended {
					if compared++; after-before != n {
						t.Errorf("%s at %d: %d in protobuf, %d in text", name, unix, n, after-before)
					}
				}
			}
		}
		if compared < 100 {
			t.Errorf("compared %d histograms, want at least 100", compared)
		}
	}
}

// A scrape seals once, because sealing takes a lock for each leaf. With a cursor it reads the clock twice more, to
// compute the lag before and after the page, without sealing.
func TestScrapeSealsOnce(t *testing.T) {
	var readings int
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time {
		readings++
		return at
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		c.Resource(fmt.Sprint(i)).Block("")
	}
	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at = at.Add(10 * time.Second)
	c.Seal()
	check := func(h http.Handler, target string, want int) {
		t.Helper()
		readings = 0
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", target, nil))
		if rec.Code != http.StatusOK || readings != want {
			t.Errorf("%s: status %d, %d clock readings, want %d", target, rec.Code, readings, want)
		}
	}
	check(metrics, "/metrics", 1)
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(page, "/metrics/seconds", 1)
	check(page, "/metrics/seconds?window=5s&histogram=classic", 1)
	check(page, "/metrics/seconds?cursor=x", 3)
	check(page, "/metrics/seconds?cursor=x", 3)
}
