package exporter

import (
	"context"
	"fmt"
	"net/http"
)

// disabledPage is the content of /metrics, /metrics/seconds and /live/ of a disabled Exporter: a comment, so a scrape
// succeeds and has no samples.
const disabledPage = "# windowstat is disabled by exporter.Options.Disabled\n"

// newDisabled returns an Exporter without parts, whose Collector is nil.
func newDisabled(o Options) *Exporter {
	x := &Exporter{options: o.filled(), Metrics: http.HandlerFunc(serveDisabled)}
	x.handler = x.mux()
	return x
}

// serveDisabled serves disabledPage.
func serveDisabled(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = fmt.Fprint(w, disabledPage) // fails if the client has disconnected
}

// runDisabled is Run of a disabled Exporter.
func (x *Exporter) runDisabled(ctx context.Context) error {
	x.ready.Store(ctx.Err() == nil)
	<-ctx.Done()
	x.ready.Store(false)
	return nil
}
