// Package telemetry runs the statistics of commands that serve: the ways out, a server of their pages, which may have TLS and
// passwords, and the flags of both.
//
// proxy, replay --follow, otlp and demo count calls from different sources, and share all else. [Options].Flags are the flags that
// they have in common, which fill the options of package exporter and are checked by it; an error names the flag in the place of the
// field. [Telemetry] owns the Collector, the exporter and the server of the pages, and knows the order in which they begin and end.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
)

// Telemetry is what runs. It must be made with [Start], and ended with [Telemetry.Stop].
//
// A command that serves does all in this order: it checks its options; it starts the telemetry, whose ports are bound first; it keeps
// names, if it has any that are earned; it listens for what it counts; it is ready. At the end it is not ready any more, takes in no more,
// and only then ends the telemetry: the last second is in every way out before the pages, on which it can be read, end.
type Telemetry struct {
	*exporter.Exporter
	// Pages is the server of the pages.
	Pages *server.Server
	// Logger is for messages of the command.
	Logger *slog.Logger
	// Banner is the lines that say where the metrics page, on the first address, and the metric log are.
	Banner string

	ready   atomic.Bool
	working context.Context // of what ends before the ways out, and is waited for
	end     context.CancelFunc
	work    sync.WaitGroup
	finish  func() error
}

// Start listens, makes the Collector, and starts the ways out. On an error nothing is left running. The pages say that they are not
// ready, until [Telemetry.Ready].
func Start(o *Options, stderr io.Writer) (*Telemetry, error) {
	logger := o.Logger(stderr)
	// The ports first: a second process with the same flags fails here, before it touches the log's files.
	addresses := o.Listen
	if len(addresses) == 0 {
		addresses = []string{DefaultListen}
	}
	bounds := server.Pages()
	bounds.Proxies, bounds.Conns = o.Exporter.Seconds.Proxies, max(1, bounds.Conns/len(addresses))
	listeners, err := bounds.Listen(logger, addresses...)
	if err != nil {
		return nil, fmt.Errorf("--web.listen-address: %w", err)
	}
	options, first := o.exporter(), listeners[0].Addr()
	options.Logger = logger
	nameInstance(&options, first)
	x, err := exporter.New(options)
	if err != nil {
		return nil, errors.Join(o.flagged(err), server.Close(listeners))
	}
	t := &Telemetry{Exporter: x, Logger: logger, finish: x.Start()}
	t.working, t.end = context.WithCancel(context.Background())
	if x.Limits != nil {
		t.reloadOnHangup()
	}
	pages := x.Server()
	pages.Handler = t.handler(pages.Handler, o.Profiles)
	if o.WebConfig != nil {
		o.WebConfig.Protect(pages, o.Exporter.Seconds.Proxies, logger)
	}
	scheme := "http"
	if pages.TLSConfig != nil {
		scheme = "https"
	}
	t.Banner = fmt.Sprintf("metrics     %s://%s%s\n", scheme, first, options.MetricsPath)
	if options.Log.Dir != "" {
		t.Banner += fmt.Sprintf("metric log  %s\n", options.Log.Dir)
	}
	t.Pages = server.Start(pages, listeners...)
	for _, l := range listeners[1:] {
		logger.Info("the pages are served here, too", "address", l.Addr())
	}
	return t, nil
}

// nameInstance gives pushes without a label instance that of this process: host and port.
func nameInstance(o *exporter.Options, listening net.Addr) {
	host, err := os.Hostname()
	_, port, errPort := net.SplitHostPort(listening.String())
	if errors.Join(err, errPort) != nil {
		return
	}
	for i := range o.Push {
		labels := map[string]string{"instance": net.JoinHostPort(host, port)}
		maps.Copy(labels, o.Push[i].Labels)
		o.Push[i].Labels = labels
	}
}

// handler serves the pages. /-/ready says 503 until the command listens wherever it serves, and again from the moment that it is told to
// end: who balances load looks elsewhere then, while what has begun is finished.
//
// Go's profiles are nowhere else: the default mux of net/http, where importing net/http/pprof puts them, is not served. The command line
// is left out: a URL with a token may be on it.
func (t *Telemetry) handler(pages http.Handler, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// Not by the mux: the pages refuse bodies before anything else.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/-/ready" && !t.ready.Load():
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		case profiles && strings.HasPrefix(r.URL.Path, "/debug/pprof"):
			mux.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// reloadOnHangup reads limits again on SIGHUP.
func (t *Telemetry) reloadOnHangup() {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.work.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				_ = t.Limits.Reload() // it has been logged
			case <-t.working.Done():
				return
			}
		}
	})
}

// Finish ends the ways out, with the last second in them. The pages go on until [Telemetry.Stop].
func (t *Telemetry) Finish() error {
	t.end()
	t.work.Wait()
	return t.finish()
}

// Stop ends the ways out, unless [Telemetry.Finish] has, and then the pages.
func (t *Telemetry) Stop() error { return errors.Join(t.Finish(), t.Pages.Stop()) }

// Ready says that the command is ready, until the context that it returns ends: when ctx does, or the pages or another server that
// the command needs, or the ways out. All that it serves must listen, with what it needs.
func (t *Telemetry) Ready(ctx context.Context, servers ...*server.Server) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(t.working, cancel)
	for _, s := range append(servers, t.Pages) {
		context.AfterFunc(s.Ended, cancel)
	}
	t.ready.Store(true)
	context.AfterFunc(ctx, func() { t.ready.Store(false) })
	return ctx
}

// namesFile is the state file of the metric log with the names that are earned.
const namesFile = "names.json"

// saveNamesInterval is how often they are saved: what is earned later must be earned again after a crash.
const saveNamesInterval = time.Minute

// KeepNames keeps earned names beyond the end of the process, if there is a metric log: they are saved every minute, and when the ways out
// end. Failures are logged: the names must be earned again then.
func (t *Telemetry) KeepNames(names *httpstat.Names) {
	t.Collector.Publish(names.Metrics()...)
	if t.Log == nil {
		return
	}
	path, err := t.Log.StateFile(namesFile)
	if err == nil {
		err = names.Load(path)
	}
	if err != nil {
		t.Logger.Warn("cannot load earned names", "err", err)
	}
	if path == "" {
		return
	}
	t.work.Go(func() {
		ticker := time.NewTicker(saveNamesInterval)
		defer ticker.Stop()
		for last, failing := false, false; !last; {
			select {
			case <-ticker.C:
			case <-t.working.Done():
				last = true
			}
			err := names.Save(path)
			if err != nil && !failing {
				t.Logger.Error("cannot save the names that were earned", "err", err)
			}
			failing = err != nil
		}
	})
}
