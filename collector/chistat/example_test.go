package chistat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/chistat"
)

func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /users/{id}", Count: 2}}); err != nil {
		panic(err)
	}
	service := chi.NewRouter()
	service.Use(middleware.Recoverer, chistat.Middleware(c))
	service.Get(
		"/users/{id}",
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "user ", chi.URLParam(r, "id")) },
	)

	for _, target := range []string{"/users/7", "/users/8", "/users/9", "/nobody"} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		fmt.Println(target, w.Code)
	}
	for _, r := range c.Seal().Resources {
		total := r.Snapshot(nil).Total
		fmt.Println(r.Name(), total.Complete, "answered,", total.Block, "refused")
	}
	// Output:
	// /users/7 200
	// /users/8 200
	// /users/9 429
	// /nobody 404
	// GET /users/{id} 2 answered, 1 refused
	// unmatched 1 answered, 0 refused
}
