package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// TestRemoteWrite2 pushes by remote write 2.0 to a Prometheus that reads it and creates labels from the metadata, and
// to two servers that read version 1.0 only and respond 2xx to both versions. Each server has every second once, and
// the counters. Only the first request to each of these two servers is sent again.
func TestRemoteWrite2(t *testing.T) {
	t.Parallel()
	const length = 15
	o := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	p := logPaced(t, time.Now(), o)
	p.takes = func(second int64, call int) time.Duration { return spread(0, second, call) }
	labels := map[string]string{"job": "rw2", "instance": "e2e"}
	var ways []pushed
	var stops []func() error
	for _, s := range []*server{
		prepareServer(t, "prometheus-3", prometheus3), prepareServer(t, "prometheus-2", prometheus2),
		prepareServer(t, "victoria", victoria),
	} {
		if s.name == "prometheus-3" {
			s.args = append(s.args, "--enable-feature=type-and-unit-labels")
		}
		s.start(t)
		w, err := push.New(p.stats, push.Options{
			// Prometheus 2.42 accepts no histograms without a flag.
			Format: push.RemoteWrite2, URL: writeTo(s), Labels: labels, Histogram: s.name != "prometheus-2",
		})
		if err != nil {
			t.Fatal(err)
		}
		ways = append(ways, pushed{s, job{name: "rw2"}, w, p.stats, "remote_write"})
		stops = append(stops, w.Start())
	}
	begin := p.second
	p.live(func() bool { return p.second < begin+length })
	end := p.second
	deadline := time.Now().Add(catchUp)
	for _, w := range ways {
		await(t, w.server, `windowstat_persecond_pass{job="rw2",resource="steady"}`, end, deadline)
	}
	numbers := make([]map[string]float64, len(ways))
	for i, w := range ways {
		numbers[i] = w.numbers()
		if err := stops[i](); err != nil {
			t.Error(err)
		}
	}
	p.end(t)
	rows := p.rows(t, begin)
	gap := verify.Gap{
		Searcher: metriclog.Searcher{Dir: o.Dir, App: o.App},
		From:     time.Unix(begin, 0),
		To:       time.Unix(end-1, 0),
	}
	for i, w := range ways {
		t.Run(w.server.name, func(t *testing.T) {
			for _, f := range fields {
				checkSamples(t, w.server, f.metric+`{job="rw2"}[10m]`, rows.values(f, begin, end, true), end)
			}
			report, err := verify.Check(
				t.Context(),
				gap,
				verify.Options{URL: "http://" + w.addr, Labels: labels, Delay: time.Second},
			)
			if err != nil || !report.Clean() || report.Samples == 0 {
				t.Errorf("verify finds %+v, %v", report, err)
			}
			n, retries := numbers[i], 0.0
			if w.server.name != "prometheus-3" {
				retries = n["push_retries_total"]
				if retries < 1 || retries > 2 { // the first request with values, and the first with histograms
					t.Errorf("%v", n)
				}
			}
			if n["push_retries_total"] != retries || n["push_samples_total"] == 0 ||
				n["push_refused_samples_total"]+n["push_unconfirmed_samples_total"]+
					n["push_resent_samples_total"]+n["push_lost_seconds_total"] != 0 {
				t.Errorf("%v", n)
			}
			t.Log(n)
			for second, sum := begin, 0.0; second < end; second++ {
				sum += float64(p.calls(0, second).pass)
				got := w.valueAt(
					t,
					`sum(windowstat_persecond_pass_total{job="rw2",resource="steady"})`,
					float64(second+1),
				)
				if got != sum {
					t.Errorf("the counter at the end of second %d is %v, want %v", second, got, sum)
				}
			}
			if w.server.name == "prometheus-3" {
				checkTypes(t, w.server)
			}
		})
	}
}

// checkTypes compares the labels that a Prometheus created from the metadata.
func checkTypes(t *testing.T, s *server) {
	t.Helper()
	for metric, want := range map[string]string{
		"windowstat_persecond_pass":                    "gauge ",
		"windowstat_persecond_pass_total":              "counter ",
		"windowstat_persecond_rt_max_seconds":          "gauge seconds",
		"windowstat_persecond_rt_distribution_seconds": "gaugehistogram seconds",
	} {
		found := s.query(t, fmt.Sprintf(`last_over_time(%s{resource="steady"}[10m])`, metric))
		if len(found) != 1 {
			t.Errorf("%d series of %s", len(found), metric)
			continue
		}
		if got := strings.Join([]string{found[0].Metric["__type__"], found[0].Metric["__unit__"]}, " "); got != want {
			t.Errorf("%s is a %q, want %q", metric, got, want)
		}
	}
}
