package prom

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
)

// Handler serves the metrics page: all resources, windowstat itself, the Go runtime and the process; as text,
// OpenMetrics or protobuf, as the client asks, and with gzip. It has a registry of its own. The error names every option
// that is wrong.
//
// Text and OpenMetrics are appended straight from the statistics, into buffers that are kept from one scrape to the
// next; protobuf goes through client_golang.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	p, err := New(c, o)
	if err != nil {
		return nil, err
	}
	others, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	if err := errors.Join(
		all.Register(p),
		others.Register(collectors.NewGoCollector()),
		others.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	); err != nil {
		return nil, err
	}
	h := &handler{p: p, others: others}
	h.protobuf = promhttp.HandlerFor(prometheus.Gatherers{all, others}, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: others})
	return promhttp.InstrumentMetricHandler(others, h), nil
}

// handler serves the page.
type handler struct {
	p        *Collector
	others   prometheus.Gatherer // what is not windowstat's
	protobuf http.Handler
	pages    pages
	zip      compressor
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	switch format.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics:
	default:
		h.protobuf.ServeHTTP(w, r)
		return
	}
	others, err := h.others.Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	page := h.pages.get(h.p.metrics, format.FormatType() == expfmt.TypeOpenMetrics)
	defer h.pages.put(page)
	h.p.walk(page)

	w.Header().Set("Content-Type", string(format))
	out, end := h.zip.start(w, r)
	defer func() { _ = end() }() // a client that is gone
	// From here on the only errors are those of a client that is gone.
	if page.writeTo(out, h.p.metrics) != nil {
		return
	}
	enc := expfmt.NewEncoder(out, format)
	for _, f := range others {
		if enc.Encode(f) != nil {
			return
		}
	}
	if closer, ok := enc.(expfmt.Closer); ok {
		_ = closer.Close()
	}
}

// compressor zips responses, and keeps the writers to use them again.
type compressor struct{ writers sync.Pool }

// start returns where to write a response's body, and what to do at its end.
func (c *compressor) start(w http.ResponseWriter, r *http.Request) (io.Writer, func() error) {
	if !acceptsGzip(r) {
		return w, func() error { return nil }
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := c.writers.Get().(*gzip.Writer)
	if z == nil {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	z.Reset(w)
	return z, func() error {
		defer c.writers.Put(z)
		return z.Close()
	}
}

// acceptsGzip reports whether the client takes gzip.
func acceptsGzip(r *http.Request) bool {
	for _, header := range r.Header["Accept-Encoding"] {
		for coding := range strings.SplitSeq(header, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if name == "gzip" && strings.TrimSpace(q) != "q=0" {
				return true
			}
		}
	}
	return false
}
