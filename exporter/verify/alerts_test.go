package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Alerts fired where their series has samples: one that pauses fired twice. They come in the order of time, with the labels that it
// was asked for, and a warning is an error.
func TestAlerts(t *testing.T) {
	warnings := `[]`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const want = `/prometheus/api/v1/query_range ALERTS{alertstate="firing",job="a\"b",team="x"} 1000 1600 15s`
		if got := strings.Join([]string{r.URL.Path, r.FormValue("query"), r.FormValue("start"), r.FormValue("end"), r.FormValue("step")}, " "); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		fmt.Fprintf(w, `{"status":"success","warnings":%s,"data":{"resultType":"matrix","result":[
			{"metric":{"__name__":"ALERTS","alertname":"Slow","alertstate":"firing","severity":"page","job":"shop"},"values":[[1030,"1"],[1045,"1"],[1060,"1"],[1300,"1"]]},
			{"metric":{"__name__":"ALERTS","alertname":"Down","alertstate":"firing"},"values":[[1015,"1"]]}]}}`, warnings)
	}))
	defer server.Close()
	o := Options{URL: server.URL + "/prometheus", Labels: map[string]string{"team": "x", "job": `a"b`}}
	all, err := Alerts(t.Context(), o, time.Unix(1000, 0), time.Unix(1600, 0))
	var got []string
	for _, a := range all {
		got = append(got, fmt.Sprintf("%s{%s} %d-%d", a.Name, a.Labels, a.From.Unix(), a.To.Unix()))
	}
	const want = `Down{} 1015-1015 Slow{job="shop", severity="page"} 1030-1060 Slow{job="shop", severity="page"} 1300-1300`
	if text := strings.Join(got, " "); err != nil || text != want {
		t.Errorf("%v: %s\nwant %s", err, text, want)
	}
	warnings = `["a store did not answer"]`
	if _, err := Alerts(t.Context(), o, time.Unix(1000, 0), time.Unix(1600, 0)); err == nil || !strings.Contains(err.Error(), "a store did not answer") {
		t.Errorf("a warning is no error: %v", err)
	}
}
