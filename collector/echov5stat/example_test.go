package echov5stat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/echov5stat"
)

func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	if err := c.SetLimits([]collector.Limit{{Resource: "GET /users/:id", Count: 2}}); err != nil {
		panic(err)
	}
	service := echo.New()
	service.Use(middleware.Recover(), echov5stat.Middleware(c))
	service.GET("/users/:id", func(ec *echo.Context) error { return ec.String(http.StatusOK, "user "+ec.Param("id")) })

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
	// GET /users/:id 2 answered, 1 refused
	// unmatched 1 answered, 0 refused
}
