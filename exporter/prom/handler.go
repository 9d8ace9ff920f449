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

// Handler serves the metrics page: all resources, windowstat itself, the Go runtime and the process; as text,
// OpenMetrics or protobuf, as the client asks, and with gzip. It has a registry of its own. The error names every option
// that is wrong.
//
// Text and OpenMetrics are appended straight from the statistics, into buffers that are kept from one scrape to the
// next; protobuf goes through client_golang.
func Handler(c *collector.Collector, o Options) (http.Handler, error) {
	h := &handler{door: newDoor(), last: scrape{page: "metrics"}}
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

// handler serves the page.
type handler struct {
	p           *Collector
	others, all prometheus.Gatherer // what is not windowstat's, and everything
	door        door
	pages       text.Pages
	families    []*table.Family
	zip         gzipped.Writers
	last        scrape
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	leave, err := h.door.enter(w, r, began)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
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
	counted := &counter{Writer: out}
	// From here on the only errors are those of a client that is gone.
	_, _ = page.WriteTo(counted)
	samples := page.Samples() + encode(counted, format, families)
	_ = end()
	h.last.was(time.Since(began), samples, counted.n)
}

// dialect is the format of our own text.
func dialect(f expfmt.Format) text.Format {
	if f.FormatType() == expfmt.TypeOpenMetrics {
		return text.OpenMetrics
	}
	return text.Prometheus
}

// encode writes what client_golang gathered, and the end of the page, and returns how many samples there are.
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
