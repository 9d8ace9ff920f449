package prom

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// Handler serves /metrics: all resources, windowstat itself, the Go runtime and the process. The Accept header chooses text,
// OpenMetrics or protobuf, and gzip is used if the client accepts it. At most ten responses are made at a time; a client that
// waits longer than its scrape timeout gets 503. The error names every invalid option.
//
// In protobuf counters and histograms have created timestamps, to the second: with created-timestamp-zero-ingestion Prometheus
// then knows the first calls of a new resource as an increase. A reason or class that is new on an old resource is taken for as old
// as that. The text formats have none: in OpenMetrics they would be series of their own on a server without that option. So it is
// for a registry with [New], as with all of client_golang.
//
// Text and OpenMetrics are appended directly from the statistics to reused buffers; protobuf goes through client_golang. It
// has a registry of its own.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	h := &handler{limiter: newLimiter(), last: scrapeStats{page: "metrics"}}
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
	c.Publish(h.last.metrics()...)
	return promhttp.InstrumentMetricHandler(others, h), nil
}

// handler serves /metrics.
type handler struct {
	p           *Collector
	others, all prometheus.Gatherer // all but windowstat's metrics, and all
	limiter     limiter
	pages       text.Pages
	families    []*table.Family
	zip         gzipped.Writers
	last        scrapeStats
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	release, err := h.limiter.acquire(w, r, began)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer release()
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	kind, gatherer := format.FormatType(), h.all
	plain := kind == expfmt.TypeTextPlain || kind == expfmt.TypeOpenMetrics
	if plain {
		gatherer = h.others
	}
	families, err := gatherer.Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	page := h.pages.Get(dialect(format), h.families...)
	defer h.pages.Put(page)
	if plain {
		h.p.metrics.Gather(gather.Page{Page: page})
	}
	w.Header().Set("Content-Type", string(format))
	out, end := h.zip.Start(w, r)
	counted := &countingWriter{Writer: out}
	// From here on errors mean that the client has disconnected.
	_, _ = page.WriteTo(counted)
	samples := page.Samples() + encode(counted, format, families)
	_ = end()
	h.last.record(time.Since(began), samples, counted.n)
}

// dialect returns the text format for our own encoder.
func dialect(f expfmt.Format) text.Format {
	if f.FormatType() == expfmt.TypeOpenMetrics {
		return text.OpenMetrics
	}
	return text.Prometheus
}

// encode writes the families that client_golang gathered, and the end of the page, and returns the number of samples.
func encode(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) (samples int) {
	enc := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if enc.Encode(f) != nil {
			return samples
		}
		samples += len(f.Metric)
	}
	if closer, ok := enc.(expfmt.Closer); ok {
		_ = closer.Close()
	}
	return samples
}
