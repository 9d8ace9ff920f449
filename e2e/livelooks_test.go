package e2e

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// liveLooks takes pictures of the page in its usual forms: light and dark, on a desk and on a phone, without data, with
// all calls, and with one resource. No element may be wider than the window, and times must be written in the common
// way.
func liveLooks(t *testing.T, browser context.Context) {
	resources := []string{
		"GET /", "GET /products/{id}", "GET /search", "POST /orders", "POST /payments",
		"db: products", "db: orders", "GET /flash-sale",
	}
	p := newPaced(t, time.Now().Add(-170*time.Second), resources, collector.Options{})
	p.calls = func(resource int, second int64) count {
		if resources[resource] == "GET /flash-sale" {
			if second%60 != 17 {
				return count{}
			}
			return count{pass: 1200, block: 300}
		}
		wave := 1 + math.Sin(float64(second)/float64(7+resource))/3 + math.Sin(float64(second*second%97))/5
		return count{pass: int(wave * float64(40+90/(resource+1))), block: int(second) * resource % 41 / 37 * resource}
	}
	p.takes = func(second int64, call int) time.Duration {
		return time.Duration(100+(call*37+int(second)*11)%200) * time.Microsecond
	}
	url := serveLive(t, p.stats, nil)
	x := openTab(t, browser, url)
	x.await(t, `byId('state').textContent === 'live'`)
	x.keep(t, "empty")
	for range 170 {
		p.tick()
	}
	t.Cleanup(p.start(t))
	x.await(t, `received.total.seconds.size >= 170`)
	for name, width := range map[string]int64{"desk": 1280, "phone": 390} {
		x.resize(t, width, 844, name == "phone")
		for _, scheme := range []string{"light", "dark"} {
			x.scheme(t, scheme)
			x.run(t, `choose(null)`)
			x.await(t, `document.querySelectorAll('.uplot').length === 7`)
			x.keep(t, fmt.Sprintf("all-%s-%s", name, scheme))
			x.run(t, `choose('GET /search')`)
			x.await(t, `!byId('details').hidden`)
			x.keep(t, fmt.Sprintf("resource-%s-%s", name, scheme))
		}
	}
	// Response times of single calls are kept for a minute.
	if p99 := tell[[]*float64](t, x, `charts.times.plot.data[2]`); p99[0] != nil || p99[len(p99)-1] == nil ||
		*p99[len(p99)-1] == 0 {
		t.Errorf("the p99 begins with %v and ends with %v; it should begin with nothing", p99[0], p99[len(p99)-1])
	}
	for microseconds, want := range map[float64]string{
		0: "< 1 µs", 0.3: "< 1 µs", 12: "12 µs", 999.4: "999 µs", 999.5: "1 ms", 1234: "1.23 ms", 20000: "20 ms",
		999_499: "999 ms", 999_500: "1 s", 1_234_567: "1.23 s", 1_234_567_890: "1230 s",
	} {
		if got := tell[string](t, x, fmt.Sprintf(`formatDuration(%v)`, microseconds)); got != want {
			t.Errorf("%v µs is written %q; it should be %q", microseconds, got, want)
		}
	}
}
