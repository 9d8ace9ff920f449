package httpstat_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Regression: a service had a ServeMux below another ServeMux, each with its own middleware. It counted 200 inbound
// calls for 100 requests.
func TestNestedMiddlewareCountsOneInboundCall(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inner := http.NewServeMux()
	inner.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) {})
	outer := http.NewServeMux()
	outer.Handle("/api/", http.StripPrefix("/api", httpstat.Mux(c, inner, httpstat.Entrance("inner"))))
	service := httpstat.Mux(c, outer, httpstat.OriginHeader("X-Client"))
	for range 100 {
		r := httptest.NewRequest(http.MethodGet, "/api/users/7", nil)
		r.Header.Set("X-Client", "web")
		service.ServeHTTP(httptest.NewRecorder(), r)
	}
	for name, v := range map[string]collector.View{
		"inbound": c.Inbound(), "process": c.Tree().View(), "mount": c.Resource("/api/").View(),
		"route":               c.Resource("GET /users/{id}").View(),
		"origin of the route": c.Resource("GET /users/{id}").Origin("web"),
	} {
		if n := v.Snapshot(nil).Total.Complete; n != 100 {
			t.Errorf("%s: %d calls, want 100", name, n)
		}
	}
	mount := c.Tree().Children()[0].Children()
	if len(mount) != 1 || mount[0].Name() != "/api/" || len(mount[0].Children()) != 1 {
		t.Errorf("below the entrance are %v", mount)
	}
}
