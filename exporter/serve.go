package exporter

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Handler serves GET /metrics, /metrics/seconds and /live/, and links to them at /.
func (x *Exporter) Handler() http.Handler { return x.handler }

func (x *Exporter) mux() http.Handler {
	metrics := x.options.MetricsPath
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics, x.Metrics)
	mux.Handle("GET "+metrics+"/seconds", x.Seconds)
	mux.Handle("GET /live/", x.Live)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = index.Execute(w, struct{ App, Metrics, Version string }{x.options.App, metrics, Version()}) // the client is gone
	})
	return mux
}

var index = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en">
<title>{{.App}}</title>
<h1>{{.App}}</h1>
<p>Exact statistics, second by second. windowstat {{.Version}}</p>
<ul>
<li><a href="/live/">Live page</a>
<li><a href="{{.Metrics}}">Metrics</a>
<li><a href="{{.Metrics}}/seconds">Metrics of the last seconds</a>
</ul>
`))

// Watch returns a listener by which the per-second page sees which responses arrived, for a server of one's own. What else
// is served there does not matter. See [prom.Seconds.Watch]. If it is called before Run or Start, pushes have the port in
// their label instance.
func (x *Exporter) Watch(l net.Listener) net.Listener {
	for _, p := range x.pushers {
		if !p.instance && !x.ran.Load() {
			p.SetInstance(instance(l.Addr()))
		}
	}
	return x.Seconds.Watch(l)
}

// ListenAndServe is [Exporter.Serve] on an address, host:port. If it cannot be listened on, the Exporter is closed.
func (x *Exporter) ListenAndServe(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("exporter: %w", err), x.Close())
	}
	return x.Serve(ctx, l)
}

// shutdownTimeout is how long responses may take when a server ends.
const shutdownTimeout = 10 * time.Second

// Serve is Run, with Handler served on l, watched, while it lasts: the pages answer until the last second is out, so a
// scraper can still fetch it. Then live pages are ended, and running responses have ten seconds. Serve closes l.
func (x *Exporter) Serve(ctx context.Context, l net.Listener) error {
	l = x.Watch(l)
	server := &http.Server{
		// No deadline for a whole response: live pages stream, and the pages have deadlines of their own.
		Handler:           x.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(x.options.Logger.Handler(), slog.LevelDebug),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // whoever serves no more ends
		served <- server.Serve(l)
	}()
	err := x.Run(ctx)
	deadline, end := context.WithTimeout(context.Background(), shutdownTimeout)
	defer end()
	if e := server.Shutdown(deadline); e != nil {
		err = errors.Join(err, fmt.Errorf("exporter: responses were still running after %v", shutdownTimeout), server.Close())
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("exporter: %w", e))
	}
	return err
}
