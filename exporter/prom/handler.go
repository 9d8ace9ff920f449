package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sync/singleflight"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
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
	own.MustRegister(p) // Publish refuses what would be in conflict
	others.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.p, h.others, h.all = p, others, prometheus.Gatherers{own, others}
	c.Publish(h.out.last.metrics()...)
	return promhttp.InstrumentMetricHandler(others, h), nil
}

// handler serves /metrics.
type handler struct {
	p           *Collector
	others, all prometheus.Gatherer // all but windowstat's metrics, and all
	waiting     singleflight.Group  // requests for a page that has not been begun
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
	c, shared, err := h.get(ctx, r)
	var p *panicked
	switch {
	case errors.As(err, &p):
		panic(p) // as if it had been in this goroutine: net/http logs it, and tells the client nothing of it
	case errors.Is(err, limiter.ErrBusy), errors.Is(err, context.Canceled):
		busy(w, err)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = h.out.send(w, r, c, began) // an error means that the client has disconnected
		if !shared {
			h.out.recycle(c)
		}
	}
}

// get returns a page. Requests that wait for the same page share one that had not been begun when they came: none sees an older state
// than it would alone, and a flood of requests costs a page at a time. A context that ends is [limiter.ErrBusy].
func (h *handler) get(ctx context.Context, r *http.Request) (c *content, shared bool, err error) {
	format, zip, host := expfmt.NegotiateIncludingOpenMetrics(r.Header), gzipped.Accepted(r), h.out.host(r)
	key := fmt.Sprint(format, zip)
	for {
		var refused error
		// It may go on when this request has been answered, and so does not look at it.
		made := h.waiting.DoChan(key, func() (any, error) {
			leave, err := h.out.slots.Acquire(ctx, host)
			h.waiting.Forget(key) // who comes from now on gets another page
			if refused = err; err != nil {
				return nil, nil
			}
			defer leave()
			return h.make(format, zip)
		})
		select {
		case x := <-made:
			if c, _ = x.Val.(*content); c != nil || x.Err != nil {
				return c, x.Shared, x.Err
			}
			if refused != nil {
				return nil, false, refused
			}
			// The request that was to make the page has given up.
		case <-ctx.Done():
			return nil, false, limiter.ErrBusy // the content, if one is made, is left to the garbage collector
		}
	}
}

// panicked is what making a page panicked with, and where.
type panicked struct {
	value any
	stack []byte
}

// Error implements error.
func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// make makes the page in a goroutine of its own. What is published may panic or end its goroutine: neither may end the process, nor keep
// those who wait without an answer.
func (h *handler) make(format expfmt.Format, zip bool) (c *content, err error) {
	err = errors.New("a metric has ended the goroutine of the page")
	var making sync.WaitGroup
	making.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				err = &panicked{p, debug.Stack()}
			}
		}()
		c, err = h.page(format, zip)
	})
	making.Wait()
	return c, err
}

// page makes the page.
func (h *handler) page(format expfmt.Format, zip bool) (*content, error) {
	kind, plain := dialect(format)
	gatherer := h.all
	// In text, windowstat's own metrics need not be gathered as protobuf messages first, which would be most of the page's cost.
	if plain {
		gatherer = h.others
	}
	families, err := gatherer.Gather()
	if err != nil {
		return nil, err
	}
	var page *text.Page
	if plain {
		page = h.p.metrics.Page(&h.out.pages, kind)
	}
	return h.out.render(format, zip, page, families), nil
}

// dialect returns the text format for our own encoder, and reports whether it is one.
func dialect(f expfmt.Format) (kind text.Format, plain bool) {
	switch f.FormatType() {
	case expfmt.TypeTextPlain:
		return text.Prometheus, true
	case expfmt.TypeOpenMetrics:
		return text.OpenMetrics, true
	}
	return text.Prometheus, false
}
