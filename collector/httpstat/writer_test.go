package httpstat_test

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// The methods Flush and ReadFrom send status 200 if the handler has written no status, so a status that the handler
// writes afterwards is not counted.
func TestStatusImpliedByTheFirstBytes(t *testing.T) {
	for name, send := range map[string]func(w http.ResponseWriter) error{
		"Flush": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"ReadFrom": func(w http.ResponseWriter) error {
			_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("x"))
			return err
		},
	} {
		c := newCollector(t)
		get := serve(t, httpstat.Route(c, "a", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := send(w); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			w.WriteHeader(http.StatusInternalServerError)
		})), false)
		if _, err := get(http.MethodGet, "/"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := answered(t, c); !maps.Equal(got, map[string]int64{"200": 1}) {
			t.Errorf("%s: counted %v, want one 200", name, got)
		}
	}
}
