package sentinellog_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// A row that Sentinel wrote a minute ago is on the page, with its own time.
func Example() {
	dir, err := os.MkdirTemp("", "csp")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	second := time.Now().Add(-time.Minute).Truncate(time.Second)
	row := fmt.Sprintf("%d|%s|GET /users|42|3|40|1|12|0|0|0\n", second.UnixMilli(), second.Format(time.DateTime))
	path := filepath.Join(dir, "shop-metrics.log.pid7."+second.Format(time.DateOnly))
	if err := os.WriteFile(path, []byte(row), 0o600); err != nil {
		log.Fatal(err)
	}

	c, err := collector.New(collector.Options{}) // the clock; it counts nothing
	if err != nil {
		log.Fatal(err)
	}
	f, err := sentinellog.New(c, sentinellog.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	page, err := f.Seconds(prom.SecondsOptions{})
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequestWithContext(
		context.Background(),
		http.MethodGet,
		"/metrics/seconds?window=2m&resource=GET%20/users"+
			"&metric=windowstat_persecond_block&metric=windowstat_persecond_rt_avg_seconds",
		nil,
	))
	fmt.Print(regexp.MustCompile(`(?m)^#.*\n|^.*_run.*\n| \d{13}$`).ReplaceAllString(w.Body.String(), ""))
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// windowstat_persecond_block{app="shop",pid="7",resource="GET /users"} 3
	// windowstat_persecond_rt_avg_seconds{app="shop",pid="7",resource="GET /users"} 0.012
}
