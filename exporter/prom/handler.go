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
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/internal/limiter"
)

// Handler returns a handler for /metrics, with the metrics of all resources, of windowstat itself, of the Go runtime
// and of the process. The Accept header chooses between text, OpenMetrics and protobuf, and Accept-Encoding enables
// gzip. The error names every invalid option.
//
// At most ten pages are rendered concurrently, and requests that wait for the same page share it. A client that waits
// longer than its scrape timeout gets status 503. A response must be written within the scrape timeout, or within a
// minute if the request has none. If the server's WriteTimeout is shorter, it applies instead. Slow readers may have at
// most 64 MiB plus one page of unread bytes together. Beyond that, the host with the most unread bytes loses its
// slowest reader.
//
// In protobuf, counters and histograms have created timestamps with a resolution of a second. With the feature
// created-timestamp-zero-ingestion, Prometheus then counts the first calls of a new resource as an increase. A new
// reason or class of an existing resource gets the timestamp of the resource. The text formats omit created timestamps,
// because servers without that feature would store them as separate series. A registry with a Collector of [New] treats
// created timestamps in the same way, as all of client_golang does.
//
// Text and OpenMetrics pages are held as numbers, and become text when they are compressed or written. client_golang
// renders protobuf. The handler uses separate registries, not the default one.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	h := new(handler)
	h.out.init("metrics", nil)
	p, err := New(c, o)
	if err != nil {
		return nil, err
	}
	own, others := prometheus.NewRegistry(), prometheus.NewRegistry()
	own.MustRegister(p) // Publish refuses conflicting metrics
	others.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.p, h.others, h.all = p, others, prometheus.Gatherers{own, others}
	c.Publish(h.out.last.metrics()...)
	return promhttp.InstrumentMetricHandler(others, h), nil
}

// handler serves /metrics.
type handler struct {
	p           *Collector
	others, all prometheus.Gatherer // without windowstat's metrics, and with them
	waiting     singleflight.Group  // requests for a page that is not being rendered yet
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
		panic(p) // net/http logs the panic and does not show it to the client
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

// get returns a page. Requests that wait for the same page share it, and its rendering begins after they have arrived.
// A shared page is therefore not older than a separate page would be, and a flood of requests costs one page at a time.
// If the context ends, the error is [limiter.ErrBusy].
func (h *handler) get(ctx context.Context, r *http.Request) (c *content, shared bool, err error) {
	format, zip, host := expfmt.NegotiateIncludingOpenMetrics(r.Header), gzipped.Accepted(r), h.out.host(r)
	key := fmt.Sprint(format, zip)
	for {
		var refused error
		// The function must not use this request, because it may continue after the request has ended.
		made := h.waiting.DoChan(key, func() (any, error) {
			leave, err := h.out.slots.Acquire(ctx, host)
			h.waiting.Forget(key) // later requests get another page
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
			// The request that would have rendered the page has given up.
		case <-ctx.Done():
			return nil, false, limiter.ErrBusy // the garbage collector frees a page that is still rendered
		}
	}
}

// panicked is the error of a page whose rendering panicked.
type panicked struct {
	value any
	stack []byte
}

// Error implements error.
func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// make renders the page in a separate goroutine. A published metric may panic or end its goroutine. Neither may end the
// process, nor leave the waiting requests without a response.
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

// page renders the page.
func (h *handler) page(format expfmt.Format, zip bool) (*content, error) {
	kind, plain := dialect(format)
	gatherer := h.all
	// The text encoder does not need protobuf messages, which would be most of the cost of the page.
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

// dialect returns the format of our text encoder. It reports false if client_golang must encode the page.
func dialect(f expfmt.Format) (kind text.Format, plain bool) {
	switch f.FormatType() {
	case expfmt.TypeTextPlain:
		return text.Prometheus, true
	case expfmt.TypeOpenMetrics:
		return text.OpenMetrics, true
	}
	return text.Prometheus, false
}
