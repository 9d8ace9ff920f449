package httpstat_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func ExampleMux() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("id")) })
	service := httpstat.Mux(c, mux, httpstat.OriginHeader("X-Client"))

	for _, path := range []string{"/users/7", "/users/8", "/nothing"} {
		service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	for _, r := range c.Resources() {
		for code, n := range r.View().Codes() {
			if n > 0 {
				fmt.Println(r.Name(), code, n)
			}
		}
	}
	// Output:
	// GET /users/{id} 200 2
	// unmatched 404 1
}
