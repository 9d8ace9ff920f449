package exporter_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
)

func TestCatalogueIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range described(t) {
		if seen[m.Name] {
			t.Errorf("duplicate metric %s", m.Name)
		}
		seen[m.Name] = true
		if counter := strings.HasSuffix(m.Name, "_total"); counter != (m.Type == "counter") {
			t.Errorf("%s has type %s", m.Name, m.Type)
		}
		if m.Unit != "" && !strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_"+m.Unit) {
			t.Errorf("%s does not end with its unit %s", m.Name, m.Unit)
		}
		for _, unit := range []string{"seconds", "bytes"} {
			if strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_"+unit) && m.Unit != unit {
				t.Errorf("%s has the unit %q, want %s", m.Name, m.Unit, unit)
			}
		}
		if !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "|\n") {
			t.Errorf("%s: help %q", m.Name, m.Help)
		}
	}
}

// The pages of an Exporter with all its parts have exactly the documented metrics, with the documented types, HELP
// texts and labels.
func TestPagesMatchTheCatalogue(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := "[]"
		if r.URL.Path == "/api/v1/query" {
			data = `{"resultType":"matrix","result":[]}`
			if strings.HasPrefix(r.FormValue("query"), "last_over_time(") {
				data = `{"resultType":"vector","result":[]}`
			}
		}
		_, _ = io.WriteString(w, `{"status":"success","data":`+data+`}`)
	}))
	defer database.Close()
	x := everything(t, receiver.URL, database.URL)
	stop := x.Start()
	call := func(err error) {
		_, e, _ := x.Collector.Enter(t.Context(), "a", collector.Inbound(), collector.Admitted())
		e.ExitCode(err, collector.HTTPStatus(404))
	}
	// The dry run would refuse this call.
	if err := x.Collector.Resource("a").Do(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, running, _ := x.Collector.Enter(t.Context(), "a", collector.Admitted())
	call(io.ErrUnexpectedEOF) // creates an exception class
	native := func(path string) map[string]*dto.MetricFamily {
		rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
		x.Handler().ServeHTTP(rec, r)
		families := map[string]*dto.MetricFamily{}
		for d := expfmt.NewDecoder(rec.Body, expfmt.NewFormat(expfmt.TypeProtoDelim)); ; {
			f := new(dto.MetricFamily)
			if err := d.Decode(f); errors.Is(err, io.EOF) {
				return families
			} else if err != nil {
				t.Fatal(err)
			}
			families[f.GetName()] = f
		}
	}
	get := func(path string) map[string]*dto.MetricFamily {
		rec := httptest.NewRecorder()
		x.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		return families
	}
	var all, seconds map[string]*dto.MetricFamily
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		seconds = get("/metrics/seconds?cursor=a&histogram=classic")
		all = get("/metrics")
		// These metrics exist after the first push, the first check of a database, and the first completion in a sealed
		// second.
		if all["windowstat_push_last_success_timestamp_seconds"] != nil &&
			seconds["windowstat_persecond_rt_p99_seconds"] != nil &&
			all["windowstat_database_last_success_timestamp_seconds"] != nil {
			break
		}
		call(nil)
	}
	maps.Copy(all, native("/metrics/seconds?histogram=native"))
	maps.Copy(all, seconds)
	running.Exit(nil) // otherwise the shutdown would wait for the call
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, m := range described(t) {
		name := exporter.Namespace + "_" + m.Name
		f := all[name]
		if f == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		var labels []string
		for _, l := range f.Metric[len(f.Metric)-1].Label { // the first series of complete_total has no code
			labels = append(labels, l.GetName())
		}
		want := slices.Sorted(slices.Values(m.Labels))
		if slices.Sort(labels); !slices.Equal(labels, want) || f.GetHelp() != m.Help ||
			!strings.EqualFold(strings.ReplaceAll(f.GetType().String(), "_", ""), m.Type) {
			t.Errorf("%s: %v, want %+v", name, f, m)
		}
		delete(all, name)
	}
	for name := range all {
		if strings.HasPrefix(name, exporter.Namespace+"_") {
			t.Errorf("%s is not in the catalogue", name)
		}
	}
}
