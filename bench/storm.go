package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/exporter/prom"
)

// stormers is the number of goroutines that request pages without a break: more than the processors of a small machine.
const stormers = 4

// Storm is concurrent work while calls are recorded.
type Storm struct {
	Name string
	// New creates the pages that the storm requests continuously. Without pages, nothing is requested.
	New func(*Service) ([]http.Handler, error)
}

// Storms returns three storms: no requests; scrapes of windowstat's two pages; and scrapes of constant pages that are
// unrelated to windowstat and use the processors in the same way. The slowdown of recording under scrapes of
// windowstat, minus the slowdown under scrapes of constant pages, is the effect of the scrapes themselves.
func Storms() []Storm {
	return []Storm{
		{"quiet", func(*Service) ([]http.Handler, error) { return nil, nil }},
		{"constant-pages", func(s *Service) ([]http.Handler, error) {
			h, err := newConstantPage(s)
			return []http.Handler{h}, err
		}},
		{"windowstat-pages", func(s *Service) ([]http.Handler, error) {
			h, err := prom.Handler(s.Collector, prom.Options{})
			if err != nil {
				return nil, err
			}
			seconds, err := prom.NewSeconds(s.Collector, prom.SecondsOptions{})
			return []http.Handler{h, seconds}, err
		}},
	}
}

// newConstantPage exports the runtime, the process, and the state of a service at the creation of the page.
func newConstantPage(s *Service) (http.Handler, error) {
	then, err := families(s)
	if err != nil {
		return nil, err
	}
	r, err := runtimeMetrics()
	if err != nil {
		return nil, err
	}
	constant := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return then, nil })
	return promhttp.HandlerFor(prometheus.Gatherers{constant, r}, promhttp.HandlerOpts{}), nil
}

// Rage requests the pages until stop is called. stop returns the number of responses.
func Rage(pages []http.Handler) (stop func() int64) {
	var (
		done  atomic.Bool
		count atomic.Int64
		wg    sync.WaitGroup
	)
	for i := range stormers {
		if len(pages) == 0 {
			break
		}
		page := pages[i%len(pages)]
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodGet, "/?"+SecondsQuery, nil)
			for !done.Load() {
				page.ServeHTTP(discard{http.Header{}, io.Discard}, r)
				count.Add(1)
			}
		})
	}
	return func() int64 {
		done.Store(true)
		wg.Wait()
		return count.Load()
	}
}

// discard is a client that reads everything immediately.
type discard struct {
	header http.Header
	io.Writer
}

func (d discard) Header() http.Header { return d.header }
func (d discard) WriteHeader(int)     {}
