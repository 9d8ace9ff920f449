// Package telemetry runs the exporters and the pages of commands that serve. The pages may require TLS and passwords.
//
// The commands proxy, replay --follow, otlp, sentinel and demo have different sources of calls, and share the rest.
// [Options.Flags] returns their common flags. The flags set the options of package exporter, and that package checks
// them; an error names the flag instead of the field. [Telemetry] owns the Collector, the exporters and the server of
// the pages. It starts and ends them in the right order.
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

// Telemetry has the running exporters and pages. Create it with [Start], and end it with [Telemetry.Stop].
//
// A command that serves takes these steps:
//
//  1. It checks its options.
//  2. It calls Start, which first binds the ports.
//  3. If it has earned names, it calls [Telemetry.KeepNames].
//  4. It listens for the calls that it counts.
//  5. It calls [Telemetry.Ready] and serves until the returned context ends.
//  6. It stops the sources of calls.
//  7. It calls [Telemetry.Stop]. All exporters receive the last second before the pages end.
type Telemetry struct {
	*exporter.Exporter
	// Pages is the server of the pages.
	Pages *server.Server
	// Logger logs messages of the command.
	Logger *slog.Logger
	// Banner is text for the user: a line with the address of the metrics page, and a line with the directory of the
	// metric log if there is one.
	Banner string

	// ready is the state that /-/ready reports.
	ready   atomic.Bool
	working context.Context // ends the goroutines of work, before the exporters end
	end     context.CancelFunc
	// work has the goroutines that Finish waits for: the reload of limits and the saves of earned names.
	work   sync.WaitGroup
	finish func() error // ends the exporters
}

// Start binds the ports, creates the Collector, and starts the exporters and the pages. After an error nothing is
// running. /-/ready returns 503 until [Telemetry.Ready] is called.
//
// The order of the steps matters. An occupied port or an invalid file must fail before the process opens the metric
// log, because a second process must not touch the log of the first. The Collector must exist before the pages that
// show it.
func Start(o *Options, stderr io.Writer) (*Telemetry, error) {
	logger := o.Logger(stderr)
	// Bind the ports first. Then a second process with the same flags fails before it opens the files of the log.
	addresses := o.Listen
	if len(addresses) == 0 {
		addresses = []string{DefaultListen}
	}
	bounds := server.Pages()
	bounds.Proxies, bounds.Conns = o.Exporter.Seconds.Proxies, max(1, bounds.Conns/len(addresses))
	// All addresses share the connections that the pages may have, so each address gets an equal part.
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
	// Without a file of limits, the signal SIGHUP keeps its default action and ends the process.
	if x.Limits != nil {
		t.reloadOnHangup()
	}
	// The exporter creates the server with the settings that its pages need. This package adds the probe, the profiles
	// and the protection by a web configuration.
	pages := x.Server()
	pages.Handler = t.handler(pages.Handler, o.Profiles)
	if o.WebConfig != nil {
		o.WebConfig.Protect(pages, o.Exporter.Seconds.Proxies, logger)
		go o.WebConfig.Run(t.working) // Finish does not wait for it, because a file system may block it
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

// nameInstance adds the label instance to each push that does not have it. The value is the host and port of the pages,
// so the series of a push have the label that a scrape would give them.
func nameInstance(o *exporter.Options, listening net.Addr) {
	host, err := os.Hostname()
	_, port, errPort := net.SplitHostPort(listening.String())
	if errors.Join(err, errPort) != nil {
		return
	}
	for i := range o.Push {
		// Copy the map before the change, because the caller's options may be used again. A label that the user has
		// given replaces the default.
		labels := map[string]string{"instance": net.JoinHostPort(host, port)}
		maps.Copy(labels, o.Push[i].Labels)
		o.Push[i].Labels = labels
	}
}

// handler serves the pages. /-/ready returns 503 until the command listens on all its addresses, and again after the
// signal to end. A load balancer then selects other instances, while this one completes its requests.
//
// The handler also serves the profiles of Go, if profiles is true. The import of net/http/pprof adds profiles to the
// default mux of net/http, too, but no server here uses that mux. The profile with the command line is omitted, because
// the command line may have a URL with a token.
func (t *Telemetry) handler(pages http.Handler, profiles bool) http.Handler {
	mux := http.NewServeMux()
	// Index also serves the named profiles below the path, such as /debug/pprof/heap.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// The pages do not use the mux, because they refuse a request with a body before they read its path.
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

// reloadOnHangup reads the file of limits again after each SIGHUP.
func (t *Telemetry) reloadOnHangup() {
	// A buffer of one signal is sufficient: a signal during a reload causes another reload, and further ones are
	// merged.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.work.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				_ = t.Limits.Reload() // Reload logs errors
			case <-t.working.Done():
				return
			}
		}
	})
}

// Finish ends the exporters, after they have received the last second. The pages continue until [Telemetry.Stop].
//
// The goroutines of work end first: the last save of earned names writes to the directory of the metric log, and the
// exporters close this log.
func (t *Telemetry) Finish() error {
	t.end()
	t.work.Wait()
	return t.finish()
}

// Stop ends the exporters, unless [Telemetry.Finish] has ended them, and then the pages.
func (t *Telemetry) Stop() error { return errors.Join(t.Finish(), t.Pages.Stop()) }

// Ready makes /-/ready return 200 until the returned context ends. The caller must already listen on all addresses of
// the command. The context ends with ctx, with the pages, with one of servers, or with the exporters.
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

// namesFile is the name of the state file with the earned names. The file is in the directory of the metric log.
const namesFile = "names.json"

// saveNamesInterval is the time between two saves of the earned names. After a crash, names that were earned since the
// last save must be earned again.
const saveNamesInterval = time.Minute

// KeepNames loads the earned names of an earlier process, and saves them every minute and when the exporters end. It
// also publishes the metrics of names. Without a metric log it does nothing else. It logs failures; after a failed
// load, the names must be earned again.
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
		// Log only the first of consecutive failures, because a full disk would otherwise cause a message each minute.
		// The last iteration saves the names at the end of the process.
		for last, failing := false, false; !last; {
			select {
			case <-ticker.C:
			case <-t.working.Done():
				last = true
			}
			err := names.Save(path)
			if err != nil && !failing {
				t.Logger.Error("cannot save earned names", "err", err)
			}
			failing = err != nil
		}
	})
}
