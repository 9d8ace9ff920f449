package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// TestTraces sends the queries of exemplars on all dashboards to Prometheus, with and without native histograms, while
// a service records calls with trace IDs. Each query finds the ID of the selected resource, at the response time of the
// call, under the label that the provisioned data source makes a link of. No query has values, which would be lines.
func TestTraces(t *testing.T) {
	t.Parallel()
	stats, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := prom.Handler(stats, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, metrics)
	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l, nil)
	const id, other, rt = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736", 300 * time.Millisecond
	record := func() {
		stats.Record("checkout", collector.Completed{RT: rt, TraceID: id}, collector.Inbound())
		stats.Record("search", collector.Completed{RT: rt, TraceID: other}, collector.Inbound())
	}
	record()
	for _, histograms := range []string{"true", "false"} {
		s := newServer(t, "prometheus-3, native histograms "+histograms, prometheus3.path(t), false)
		s.configure(
			t,
			fmt.Sprintf("scrape_configs:\n- job_name: shop\n  scrape_interval: 1s\n  scrape_native_histograms: %s\n"+
				"  static_configs: [{targets: ['%s']}]\n", histograms, l.Addr()),
		)
		s.args = append(s.args, "--enable-feature=exemplar-storage")
		s.start(t)
		begin := time.Now()
		for deadline := begin.Add(catchUp); ; time.Sleep(time.Second) {
			if record(); len(s.exemplars(t, "{__name__=~'.+'}", begin)) > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has no exemplars", s.name)
			}
		}
		checkTraces(t, s, begin, id, rt)
	}
}

func checkTraces(t *testing.T, s *server, begin time.Time, id string, rt time.Duration) {
	t.Helper()
	n := 0
	for _, name := range []string{"overview", "resource", "self"} {
		for where, expr := range exemplarQueries(t, name) {
			n++
			expr = allSelected.Replace(
				strings.NewReplacer("${resource:regex}", "checkout", "${resources:regex}", "(checkout|none)").
					Replace(expr),
			)
			found := s.exemplars(t, expr, begin)
			if len(found) == 0 {
				t.Errorf("%s: %s, %s shows no traces", s.name, name, where)
			}
			for _, x := range found {
				if x.Labels[destination(t)] != id || x.Value != fmt.Sprint(rt.Seconds()) {
					t.Errorf("%s: %s, %s shows %v", s.name, name, where, x)
				}
			}
			if values := s.query(t, expr); len(values) > 0 {
				t.Errorf("%s: %s, %s adds lines: %v", s.name, name, where, values)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d panels show traces", n)
	}
}

type exemplar struct {
	Labels map[string]string
	Value  string
}

// exemplars returns the exemplars of the series that an expression selects, as Grafana asks for them.
func (s *server) exemplars(t *testing.T, expr string, begin time.Time) (all []exemplar) {
	t.Helper()
	at := func(x time.Time) []string { return []string{fmt.Sprint(x.Unix())} }
	body, err := s.get("/api/v1/query_exemplars", url.Values{
		"query": {expr}, "start": at(begin.Add(-time.Minute)), "end": at(time.Now().Add(time.Minute)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data []struct{ Exemplars []exemplar }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	for _, x := range answer.Data {
		all = slices.Concat(all, x.Exemplars)
	}
	return all
}

// exemplarQueries returns the queries of exemplars on a dashboard, by panel.
func exemplarQueries(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../dashboards/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Expr     string
				Exemplar bool
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			if x.Exemplar {
				all[p.Title] = x.Expr
			}
		}
	}
	return all
}

// destination returns the label of exemplars that the provisioned data source makes a link of.
func destination(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../dashboards/provisioning/datasources/windowstat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Datasources []struct {
			JSONData struct {
				Destinations []struct {
					Name, URL string
				} `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	d := file.Datasources[0].JSONData.Destinations
	if len(d) != 1 || !strings.HasSuffix(d[0].URL, "$${__value.raw}") {
		t.Fatalf("the data source has the links %v", d)
	}
	return d[0].Name
}
