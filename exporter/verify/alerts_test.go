package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An alert fires at the samples of its series. An alert that pauses is returned twice. Alerts are sorted by time, the
// query has the labels of the options, and a warning of the server is an error.
func TestAlerts(t *testing.T) {
	warnings := `[]`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const want = `/prometheus/api/v1/query_range ` +
			`ALERTS{alertstate="firing",team="x",job=~"a\"b(-seconds)?"} 1000 1600 15s`
		got := r.URL.Path
		for _, name := range []string{"query", "start", "end", "step"} {
			got += " " + r.FormValue(name)
		}
		if got != want {
			t.Errorf("request %s, want %s", got, want)
		}
		fmt.Fprintf(w, `{"status":"success","warnings":%s,"data":{"resultType":"matrix","result":[
			{"metric":{"__name__":"ALERTS","alertname":"Slow","alertstate":"firing","severity":"page","job":"shop"},
				"values":[[1030,"1"],[1045,"1"],[1060,"1"],[1300,"1"]]},
			{"metric":{"__name__":"ALERTS","alertname":"Down","alertstate":"firing"},
				"values":[[1015,"1"]]}]}}`, warnings)
	}))
	defer server.Close()
	o := Options{URL: server.URL + "/prometheus", Labels: map[string]string{"team": "x", "job": `a"b`}}
	all, err := Alerts(t.Context(), o, time.Unix(1000, 0), time.Unix(1600, 0))
	var got []string
	for _, a := range all {
		got = append(got, fmt.Sprintf("%s{%s} %d-%d", a.Name, a.Labels, a.From.Unix(), a.To.Unix()))
	}
	const want = `Down{} 1015-1015 ` +
		`Slow{job="shop", severity="page"} 1030-1060 Slow{job="shop", severity="page"} 1300-1300`
	if text := strings.Join(got, " "); err != nil || text != want {
		t.Errorf("%v: %s\nwant %s", err, text, want)
	}
	warnings = `["a store did not answer"]`
	_, err = Alerts(t.Context(), o, time.Unix(1000, 0), time.Unix(1600, 0))
	if err == nil || !strings.Contains(err.Error(), "a store did not answer") {
		t.Errorf("a warning must be an error: %v", err)
	}
}

// The alerts of a service have its job, or the job of its per-second endpoint. Either name selects both.
func TestJobsOfAlerts(t *testing.T) {
	const both = `{alertstate="firing",job=~"a\\.b(-seconds)?"}`
	for job, want := range map[string]string{
		"a.b": both, "a.b-seconds": both,
		"": `{alertstate="firing",job=""}`, "-seconds": `{alertstate="firing",job="-seconds"}`,
	} {
		if got := alertSelector(map[string]string{"alertstate": "firing", "job": job}); got != want {
			t.Errorf("job %q: %s, want %s", job, got, want)
		}
	}
	if got := alertSelector(map[string]string{"a": "b"}); got != `{a="b"}` {
		t.Error(got)
	}
}
