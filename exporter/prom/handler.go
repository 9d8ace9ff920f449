package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// Handler serves /metrics: all resources, windowstat itself, the Go runtime and the process. The Accept header chooses text,
// OpenMetrics or protobuf, and gzip is used if the client accepts it. The error names every invalid option.
//
// At most ten pages are computed at a time, and requests that wait for the same one share it; a client that waits longer than
// its scrape timeout gets 503. Writing must end within the scrape timeout, a minute without one, or the server's WriteTimeout
// if that is less. What slow readers have not read is bounded by 64 MiB and a page; then the slowest is disconnected, first
// of the address that holds the most.
//
// In protobuf counters and histograms have created timestamps, to the second: with created-timestamp-zero-ingestion Prometheus
// then knows the first calls of a new resource as an increase. A reason or class that is new on an old resource is taken for as old
// as that. The text formats have none: in OpenMetrics they would be series of their own on a server without that option. So it is
// for a registry with [New], as with all of client_golang.
//
// Text and OpenMetrics are kept as the numbers that were read, and become text while they are compressed or sent; protobuf goes
// through client_golang. It has a registry of its own.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	h := new(handler)
	h.out.init("metrics", nil)
	p, err := New(c, o)
	if err != nil {
		return nil, err
	}
	own, others := prometheus.NewRegistry(), prometheus.NewRegistry()
	if err := errors.Join(
		own.Register(p),
		others.Register(collectors.NewGoCollector()),
		others.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	); err != nil {
		return nil, err
	}
	h.p, h.others, h.all = p, others, prometheus.Gatherers{own, others}
	h.families = p.metrics.Families()
	c.Publish(h.out.last.metrics()...)
	return promhttp.InstrumentMetricHandler(others, h), nil
}

// handler serves /metrics.
type handler struct {
	p           *Collector
	others, all prometheus.Gatherer // all but windowstat's metrics, and all
	families    []*table.Family
	shared      shared
	out         sender
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	ctx, cancel, ok := h.out.begin(w, r)
	if !ok {
		return
	}
	defer cancel()
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	key := fmt.Sprint(format, gzipped.Accepted(r))
	c, err := h.shared.get(ctx, key, func() (func(), error) { return h.out.place(ctx, r) }, func() (*content, error) {
		return h.page(r, format)
	})
	switch {
	case errors.Is(err, limiter.ErrBusy), errors.Is(err, context.Canceled):
		busy(w, err)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = h.out.send(w, r, c, began) // an error means that the client has disconnected
	}
}

// page makes the page.
func (h *handler) page(r *http.Request, format expfmt.Format) (*content, error) {
	kind, gatherer := format.FormatType(), h.all
	plain := kind == expfmt.TypeTextPlain || kind == expfmt.TypeOpenMetrics
	if plain {
		gatherer = h.others
	}
	families, err := gatherer.Gather()
	if err != nil {
		return nil, err
	}
	var page *text.Page
	if plain {
		page = h.out.pages.Get(dialect(format), h.families...)
		h.p.metrics.Gather(gather.Page{Page: page})
	}
	return h.out.render(r, string(format), page, func(out io.Writer) (int, error) { return encode(out, format, families) })
}

// dialect returns the text format for our own encoder.
func dialect(f expfmt.Format) text.Format {
	if f.FormatType() == expfmt.TypeOpenMetrics {
		return text.OpenMetrics
	}
	return text.Prometheus
}

// encode writes the families that client_golang gathered, and the end of the page, and returns the number of samples.
func encode(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) (samples int, err error) {
	enc := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return samples, err
		}
		samples += len(f.Metric)
	}
	if closer, ok := enc.(expfmt.Closer); ok {
		err = closer.Close()
	}
	return samples, err
}

// shared makes requests that wait for the same page share one that had not been begun when they came: none sees an older state
// than it would alone, and a flood of requests costs a page at a time. The zero value is ready.
type shared struct {
	mu      sync.Mutex
	waiting map[string]*sharing // by what is asked for; not begun
}

// sharing is a page that some wait for.
type sharing struct {
	users int           // guarded by shared.mu
	done  chan struct{} // closed when what follows is known
	made  bool          // or who was to make it has given up
	*content
	err error
}

// get returns the page of a key, from make in a place, or from another request's. A context that ends is [limiter.ErrBusy].
func (s *shared) get(ctx context.Context, key string, place func() (leave func(), err error), make func() (*content, error)) (*content, error) {
	for {
		x, first := s.join(key)
		if first {
			return s.make(key, x, place, make)
		}
		select {
		case <-x.done:
			if x.made {
				return x.content, x.err
			}
		case <-ctx.Done():
			return nil, limiter.ErrBusy // its part of the content is left to the garbage collector
		}
	}
}

// join adds a request to those that wait, and reports whether it is the first one, which makes the page.
func (s *shared) join(key string) (x *sharing, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x = s.waiting[key]; x == nil {
		if s.waiting == nil {
			s.waiting = map[string]*sharing{}
		}
		x, first = &sharing{done: make(chan struct{})}, true
		s.waiting[key] = x
	}
	x.users++
	return x, first
}

// make makes a page for all that wait for it.
func (s *shared) make(key string, x *sharing, place func() (func(), error), make func() (*content, error)) (*content, error) {
	defer close(x.done)
	leave, err := place()
	s.mu.Lock()
	delete(s.waiting, key) // who comes from now on gets another page
	users := x.users
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer leave()
	x.content, x.err = make()
	if x.made = true; x.err == nil {
		x.content.users.Store(int32(users))
	}
	return x.content, x.err
}
