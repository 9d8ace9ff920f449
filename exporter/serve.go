package exporter

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/limiter"
	"github.com/windowstat/windowstat/internal/logonce"
	"github.com/windowstat/windowstat/internal/netlimit"
)

// Handler serves GET /metrics, /metrics/seconds and /live/, and links to them at /. GET /-/healthy always returns 200.
// GET /-/ready returns 200 while Run is in progress, and 503 before it starts and after its context is canceled.
//
// The pages limit the resources of a client: concurrent requests, memory, streams, the duration of a response. They
// accept no bodies. A server of the caller's own must limit the time before and after a request, as [Exporter.Server]
// does: with ReadHeaderTimeout, IdleTimeout, MaxHeaderBytes and, since Go 1.27, MaxHeaderValueCount. The listener
// limits the number of connections: [Exporter.Serve] accepts 256; beyond that, a new connection evicts the longest idle
// one of the host with the most. It also limits the bytes that clients send, to 512 KiB per second and as much again in
// equal parts for all connections, so neither pipelined requests nor frames of HTTP/2 keep the processors busy.
func (x *Exporter) Handler() http.Handler { return x.handler }

func (x *Exporter) mux() http.Handler {
	metrics := x.options.MetricsPath
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics, x.Metrics)
	switch {
	case x.options.Disabled:
		mux.Handle("GET "+metrics+"/seconds", x.Metrics)
		mux.Handle("GET /live/", x.Metrics)
	case x.Live == nil:
		mux.Handle("GET "+metrics+"/seconds", x.Seconds)
		mux.HandleFunc("GET /live/", func(w http.ResponseWriter, _ *http.Request) {
			const text = "the metric logs of Sentinel have no live page; use windowstat log --follow, or the dashboards"
			http.Error(w, text, http.StatusNotImplemented) // windowstat top recognizes the status
		})
	default:
		mux.Handle("GET "+metrics+"/seconds", x.Seconds)
		mux.Handle("GET /live/", x.Live)
	}
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "healthy\n")
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !x.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		data := struct {
			App, Metrics, Version string
			Live                  bool
		}{x.options.App, metrics, collector.Version(), x.Live != nil}
		_ = index.Execute(w, data) // fails if the client has disconnected
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
{{if .Live}}<li><a href="/live/">Live page</a>
{{end}}<li><a href="{{.Metrics}}">Metrics</a>
<li><a href="{{.Metrics}}/seconds">Metrics of the last seconds</a>
</ul>
`))

// ConnState is a hook for [http.Server].ConnState. It shows the per-second page which responses were read. A server of
// the caller's own must set it; [Exporter.Server] does. See [prom.Seconds.ConnState].
func (x *Exporter) ConnState(c net.Conn, state http.ConnState) {
	if x.Seconds != nil {
		x.Seconds.ConnState(c, state)
	}
}

// ListenAndServe calls [Exporter.Serve] with a listener on address, host:port. If it cannot listen, it closes the
// Exporter.
func (x *Exporter) ListenAndServe(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("exporter: %w", err), x.Close())
	}
	return x.Serve(ctx, l)
}

// shutdownTimeout is the time that running responses get at shutdown.
const shutdownTimeout = 10 * time.Second

// Timeouts of a server. The pages also set deadlines for their writes: at most a minute, and one for each message of a
// live page.
const (
	readTimeout  = 10 * time.Second // for headers; no page takes a body
	writeTimeout = 65 * time.Second
	idleTimeout  = 2 * time.Minute
	// maxConnections limits the open connections. It exceeds the number of scrapers and viewers, and is below the usual
	// limit on open files.
	maxConnections = 256
	// maxHeader is the limit of headers and URL minus the 4 KiB that net/http adds to it: 16 KiB in total.
	maxHeader = 12 << 10
	// maxHeaderCount is several times the number of headers that scrapers, browsers and their proxies send.
	maxHeaderCount = 100
	// maxStreams applies if the caller enables HTTP/2.
	maxStreams = 8
)

// Server returns a server of the pages with the deadlines of [Exporter.Serve], for services that need TLS or other
// listeners. It speaks HTTP/1.1 only, also with TLS: an HTTP/2 connection does not show whether a response was read,
// and limits on connections do not limit its requests. The caller may replace Handler with a handler that serves other
// pages as well; the deadlines then apply to these, too.
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
	netlimit.LimitHeaderCount(server, maxHeaderCount)
	return server
}

// Serve calls Run and serves Handler on l, with at most 256 connections, until Run returns: a scraper can still fetch
// the last second. Serve then ends live pages, gives running responses ten seconds, and closes l. It adds the port to
// the default label instance of pushes.
func (x *Exporter) Serve(ctx context.Context, l net.Listener) error {
	for _, p := range x.pushers {
		if !x.ran.Load() {
			p.SetInstance(instance(l.Addr()))
		}
	}
	l = netlimit.Listen(l, netlimit.Bounds{
		Conns: maxConnections, Stall: writeTimeout, Intake: netlimit.LimitBytes, Proxies: x.options.Seconds.Proxies,
	})
	server := x.Server()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // Run ends when the server does
		served <- netlimit.Serve(l, server.Serve)
	}()
	err := x.Run(ctx)
	deadline, end := context.WithTimeout(context.Background(), shutdownTimeout)
	defer end()
	if e := server.Shutdown(deadline); e != nil {
		err = errors.Join(err, fmt.Errorf("exporter: responses were still running after %v", shutdownTimeout),
			server.Close())
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("exporter: %w", e))
	}
	return err
}
