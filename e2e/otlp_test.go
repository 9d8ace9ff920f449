package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

const otlpSeconds = 15

// TestOTLP pushes by OTLP, with cumulative sums and histograms and with deltas, to the servers that accept OTLP. One of
// them accepts deltas, and one does not. Every second arrives, and verify finds nothing. At the end of each second, a
// sum grows by the passes of that second. The histograms have every bucket. The server without deltas refuses the
// deltas and nothing else.
func TestOTLP(t *testing.T) {
	t.Parallel()
	o := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	p := logPaced(t, time.Now(), o)
	p.takes = func(second int64, call int) time.Duration { return spread(0, second, call) }
	start := func(name string, program program, args ...string) *server {
		s := prepareServer(t, name, program)
		s.args = append(s.args, args...)
		s.start(t)
		return s
	}
	plain := start("prometheus-3", prometheus3, "--web.enable-otlp-receiver")
	native := start("prometheus-3-deltas", prometheus3, "--web.enable-otlp-receiver",
		"--enable-feature=otlp-native-delta-ingestion")
	vm := start("victoria", victoria)
	type way struct {
		pushed
		deltas bool
	}
	var ways []way
	var stops []func() error
	for _, to := range []struct {
		*server
		format push.Format
		way    string
	}{
		{plain, push.OTLP, "otlp"},
		{vm, push.OTLP, "otlp"},
		{plain, push.OTLPDelta, "otlp_delta"},
		{native, push.OTLPDelta, "otlp_delta"},
	} {
		path := otlpToPrometheus
		if to.isVictoria {
			path = otlpToVictoria
		}
		w, err := push.New(p.stats, push.Options{
			Format: to.format, URL: "http://" + to.addr + path,
			Labels: map[string]string{"job": to.way, "instance": "e2e"}, Histogram: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		ways = append(ways, way{pushed{to.server, job{name: to.way}, w, p.stats, to.way}, to.format == push.OTLPDelta})
		stops = append(stops, w.Start())
	}
	begin := p.second
	p.live(func() bool { return p.second < begin+otlpSeconds })
	end := p.second
	deadline := time.Now().Add(catchUp)
	for _, w := range ways {
		await(t, w.server, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, w.way), end, deadline)
	}
	numbers := make([]map[string]float64, len(ways))
	for i, w := range ways {
		numbers[i] = w.numbers()
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	p.end(t)
	rows := p.rows(t, begin)
	gap := verify.Gap{
		Searcher: metriclog.Searcher{Dir: o.Dir, App: o.App},
		From:     time.Unix(begin, 0), To: time.Unix(end-1, 0),
	}
	for i, w := range ways {
		t.Run(w.server.name+"/"+w.way, func(t *testing.T) {
			o := verify.Options{
				URL:    "http://" + w.addr,
				Labels: map[string]string{"job": w.way, "instance": "e2e"}, Delay: time.Second,
			}
			compare := func() {
				for _, f := range fields {
					checkSamples(t, w.server, f.metric+fmt.Sprintf(`{job=%q}[10m]`, w.way),
						rows.values(f, begin, end, true), end)
				}
				report, err := verify.Check(t.Context(), gap, o)
				if err != nil || !report.Clean() || report.Samples == 0 {
					t.Errorf("verify finds %+v, %v", report, err)
				}
				t.Logf("%d samples compared by verify", report.Samples)
			}
			compare()
			n := numbers[i]
			if n["push_retries_total"] != 0 || n["push_lost_seconds_total"] != 0 ||
				(n["push_refused_samples_total"] > 0) != (w.server == plain && w.deltas) {
				t.Errorf("%v", n)
			}
			t.Log(n)
			if !w.deltas || w.server == native {
				checkOTLPSums(t, p, w.server, w.way, w.deltas, begin, end)
			}
			if w.isVictoria {
				checkOTLPHealed(t, w.server, gap, o)
				compare()
			}
		})
	}
}

// checkOTLPSums compares the sums and histograms of a resource with its calls, for each second or up to its end.
func checkOTLPSums(t *testing.T, p loggedPaced, s *server, job string, deltas bool, begin, end int64) {
	t.Helper()
	labels := fmt.Sprintf(`{job=%q,resource="steady"}`, job)
	sum, buckets, histogram := 0.0, map[int]float64{}, "windowstat_persecond_rt_seconds"
	if deltas {
		histogram = "windowstat_persecond_rt_distribution_seconds"
	}
	for second := begin; second < end; second++ {
		if deltas {
			sum, buckets = 0, map[int]float64{}
		}
		pass := p.calls(0, second).pass
		sum += float64(pass)
		for call := range pass {
			buckets[bucketOf(spread(0, second, call).Seconds())]++
		}
		at := second + 1
		if got := s.valueAt(t, "sum(windowstat_persecond_pass_total"+labels+")", float64(at)); got != sum {
			t.Errorf("the sum at the end of second %d is %v, want %v", second, got, sum)
		}
		got := map[int]float64{}
		if s.isVictoria {
			for _, x := range s.queryAt(t, histogram+"_bucket"+labels, float64(at)) {
				_, upper, _ := strings.Cut(x.Metric["vmrange"], "...")
				got[bucketTo(t, upper)] += x.Value.value
			}
		} else {
			h := s.histogramAt(t, histogram+labels, at)
			got = h.byBucket(t)
		}
		if !maps.Equal(got, buckets) {
			t.Errorf("the histogram at the end of second %d has %v, want %v", second, got, buckets)
		}
	}
}

// checkOTLPHealed deletes a resource from VictoriaMetrics, which keeps OTLP attributes as labels with dots. It then
// checks that verify writes the resource again with the same labels.
func checkOTLPHealed(t *testing.T, s *server, gap verify.Gap, o verify.Options) {
	t.Helper()
	resp, err := http.PostForm("http://"+s.addr+"/api/v1/admin/tsdb/delete_series",
		url.Values{"match[]": {`{resource="steady"}`}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	o.All = true // a whole resource is missing
	healing, err := verify.Heal(t.Context(), gap, o, verify.Target{Push: push.Options{URL: writeTo(s)}})
	if err != nil || healing.Written == 0 {
		t.Errorf("%+v, %v", healing, err)
	}
}
