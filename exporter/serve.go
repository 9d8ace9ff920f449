package exporter

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// Handler serves GET /metrics, /metrics/seconds and /live/, and links to them at /. /-/healthy answers 200 as soon as it is
// served; /-/ready does while Run lasts, and 503 before and from the moment that its context ends.
//
// The pages bound by themselves what a client can hold: places, memory, streams, the time of a response; they take no bodies. A
// server of one's own has to bound what comes before and after a request, as [Exporter.Server] does: with ReadHeaderTimeout
// and IdleTimeout, with MaxHeaderBytes, and since Go 1.27 with MaxHeaderValueCount. How many connections there are is up to the listener: that of [Exporter.Serve] has
// 256, and a new one takes the place of the longest idle one of the host that has most.
func (x *Exporter) Handler() http.Handler { return x.handler }

func (x *Exporter) mux() http.Handler {
	metrics := x.options.MetricsPath
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics, x.Metrics)
	mux.Handle("GET "+metrics+"/seconds", x.Seconds)
	mux.Handle("GET /live/", x.Live)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "healthy\n") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !x.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = index.Execute(w, struct{ App, Metrics, Version string }{x.options.App, metrics, collector.Version()}) // the client is gone
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if limiter.Begin(w, r, writeTimeout) {
			mux.ServeHTTP(w, r)
		}
	})
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

// ConnState is a hook for [http.Server].ConnState, by which the per-second page sees which responses were read, for a server of
// one's own; [Exporter.Server] has it. See [prom.Seconds.ConnState].
func (x *Exporter) ConnState(c net.Conn, state http.ConnState) { x.Seconds.ConnState(c, state) }

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

// Timeouts of a server. The pages have deadlines of their own for what they write, a minute at most, and live pages one for each
// message.
const (
	readTimeout  = 10 * time.Second // for headers; no page takes a body
	writeTimeout = 65 * time.Second
	idleTimeout  = 2 * time.Minute
	// maxConnections are at most open: more than scrapers and viewers have, and fewer than the files of a process.
	maxConnections = 256
	// maxHeader is what a request's headers and its URL may have, less the 4 KiB that net/http reads beyond it: 16 KiB in all.
	maxHeader = 12 << 10
	// maxHeaderCount is several times what scrapers, browsers and the proxies in front of them send.
	maxHeaderCount = 100
	// maxStreams is for a server that is made to speak HTTP/2.
	maxStreams = 8
)

// Server returns a server of the pages with deadlines for whatever a client can delay, as [Exporter.Serve] has it, for services
// that need TLS or other listeners. It speaks HTTP/1.1 only, with TLS, too: on a connection of HTTP/2 nothing shows whether a response
// was read, and bounds on connections do not bound its requests. Handler may be replaced by one that serves other things, too,
// which have its deadlines then.
func (x *Exporter) Server() *http.Server {
	server := &http.Server{
		Handler:           x.handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         x.ConnState,
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          logonce.Server(x.options.Logger),
	}
	server.Protocols.SetHTTP1(true)
	// It is the number of headers that takes memory. The field is there since Go 1.27.
	if count := reflect.ValueOf(server).Elem().FieldByName("MaxHeaderValueCount"); count.IsValid() {
		count.SetInt(maxHeaderCount)
	}
	return server
}

// Serve is Run, with Handler served on l, with 256 connections at most, while it lasts: the pages answer until the last second is out, so a
// scraper can still fetch it. Then live pages are ended, and running responses have ten seconds. Serve closes l. Pushes have the
// port in their label instance.
func (x *Exporter) Serve(ctx context.Context, l net.Listener) error {
	for _, p := range x.pushers {
		if !x.ran.Load() {
			p.SetInstance(instance(l.Addr()))
		}
	}
	l = netlimit.Listen(l, netlimit.Bounds{Conns: maxConnections, Stall: writeTimeout, Proxies: x.options.Seconds.Proxies})
	server := x.Server()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // Run ends when the server does
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
