package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// telemetryFlags are the flags of every command that serves statistics.
func telemetryFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "web.listen-address", Value: "127.0.0.1:9719", Usage: "`ADDRESS` for the metrics page, host:port"},
		&cli.StringFlag{Name: "web.config.file", Usage: "`FILE` that enables TLS or authentication, in the exporters' web configuration format"},
		&cli.StringFlag{Name: "web.telemetry-path", Value: "/metrics", Usage: "`PATH` of the metrics page"},
		&cli.StringFlag{Name: "metrics.by", Usage: "`LABEL` that the metrics of resources get besides resource: origin or entrance"},
		&cli.BoolFlag{Name: "metrics.histograms-by", Usage: "give the histogram this label, too"},
		&cli.StringFlag{Name: "limits.file", Usage: "`FILE` of limits, YAML or JSON; read again on SIGHUP and when it changes"},
		&cli.StringFlag{Name: "log.level", Value: "info", Usage: "`LEVEL` of messages: " + strings.Join(promslog.LevelFlagOptions, ", ")},
		&cli.StringFlag{Name: "log.format", Value: "logfmt", Usage: "`FORMAT` of messages: " + strings.Join(promslog.FormatFlagOptions, " or ")},
	}, append(logFlags(), pushFlags()...)...)
}

// settings are the values of the flags, checked.
type settings struct {
	listen, webConfig, path, limits string
	logOptions                      metriclog.Options // without a Dir for none
	page                            prom.Options
	pushes                          []push
	logger                          *slog.Logger
}

func parseSettings(c *cli.Context, stderr io.Writer) (settings, error) {
	s := settings{
		listen:    c.String("web.listen-address"),
		webConfig: c.String("web.config.file"),
		path:      c.String("web.telemetry-path"),
		limits:    c.String("limits.file"),
		page:      prom.Options{By: c.String("metrics.by"), HistogramsBy: c.Bool("metrics.histograms-by")},
	}
	var errs []error
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	s.logOptions = parseLog(c, wrong)
	wrong("web.listen-address", checkAddress(s.listen))
	if s.webConfig != "" {
		wrong("web.config.file", web.Validate(s.webConfig))
	}
	if !validPath.MatchString(s.path) || path.Clean(s.path) != s.path {
		wrong("web.telemetry-path", fmt.Errorf("%q is not a path below / of letters, digits and ._~-, such as /metrics", s.path))
	}
	switch s.page.By {
	case "":
		if s.page.HistogramsBy {
			wrong("metrics.histograms-by", errors.New("needs --metrics.by"))
		}
	case "origin", "entrance":
	default:
		wrong("metrics.by", fmt.Errorf("%q is neither origin nor entrance", s.page.By))
	}
	if s.limits != "" {
		_, err := limitfile.Read(s.limits)
		wrong("limits.file", err)
	} else if c.IsSet("limits.file") {
		wrong("limits.file", errors.New("is empty; leave it out for no limits"))
	}
	level, format := promslog.NewLevel(), promslog.NewFormat()
	if err := level.Set(c.String("log.level")); err != nil {
		wrong("log.level", fmt.Errorf("%q is not one of %s", c.String("log.level"), strings.Join(promslog.LevelFlagOptions, ", ")))
	}
	if err := format.Set(c.String("log.format")); err != nil {
		wrong("log.format", fmt.Errorf("%q is not one of %s", c.String("log.format"), strings.Join(promslog.FormatFlagOptions, ", ")))
	}
	pushes, err := parsePushes(c)
	s.pushes, errs = pushes, append(errs, err)
	s.logger = promslog.New(&promslog.Config{Level: level, Format: format, Writer: stderr})
	return s, errors.Join(errs...)
}

var validPath = regexp.MustCompile(`^(/[a-zA-Z0-9._~-]+)+$`)

// checkAddress looks at an address without listening on it.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("%q: port %q is not a number from 0 to 65535", address, port)
	}
	return nil
}

// telemetry is what a serving command runs beside its own work: the metrics page, the metric log if there is a
// directory for it, and the limits if there is a file of them.
type telemetry struct {
	settings
	*server
	stats     *collector.Collector
	live      *live.Page
	handler   http.Handler
	log       *metriclog.Writer // nil without a directory
	stopLog   func() error
	stopPush  []func() error
	stopLimit func()
}

// startTelemetry makes the Collector, listens, and starts the page, the log and the limits. On an error nothing is left
// running.
func startTelemetry(o collector.Options, app string, s settings) (_ *telemetry, err error) {
	t := &telemetry{settings: s, stopLog: func() error { return nil }, stopLimit: func() {}}
	// The port first: whoever has it keeps a second process with the same flags away from the log's files.
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("--web.listen-address: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, listener.Close())
		}
	}()
	s.logOptions.App, s.logOptions.Logger = app, s.logger
	if s.logOptions.Dir != "" {
		if o.After, err = metriclog.Last(s.logOptions); err != nil {
			return nil, fmt.Errorf("--metric-log.dir: %w", err)
		}
	}
	c, err := collector.New(o)
	if err != nil {
		return nil, err
	}
	t.stats = c
	var limits *limitfile.Watcher
	if s.limits != "" {
		if limits, err = limitfile.Watch(c, s.limits, s.logger); err != nil {
			return nil, fmt.Errorf("--limits.file: %w", err)
		}
		s.page.Sources = append(s.page.Sources, limits)
		s.logger.Info("limits were read", "file", s.limits, "limits", len(c.Limits()))
	}
	var persecond prom.SecondsOptions
	if s.logOptions.Dir != "" {
		if t.log, err = metriclog.New(c, s.logOptions); err != nil {
			return nil, fmt.Errorf("--metric-log.dir: %w", err)
		}
		s.page.Sources = append(s.page.Sources, t.log)
		persecond.Log = t.log
	}
	var pushers []pusher
	for _, p := range s.pushes {
		p.options.Logger = s.logger
		if p.options.Labels["instance"] == instance(s.listen) { // the port may have been ours to choose
			p.options.Labels["instance"] = instance(listener.Addr().String())
		}
		x, err := p.make(c, p.options)
		if err != nil {
			return nil, err
		}
		pushers = append(pushers, x)
		s.page.Sources = append(s.page.Sources, x)
	}
	seconds, err := prom.NewSeconds(c, persecond)
	if err != nil {
		return nil, err
	}
	s.page.Sources = append(s.page.Sources, seconds)
	if t.handler, err = prom.Handler(c, s.page); err != nil {
		return nil, err
	}
	if t.live, err = live.New(c, live.Options{Title: app}); err != nil {
		return nil, err
	}
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name:        "windowstat",
		Description: "Exact statistics, second by second: " + app,
		Version:     exporter.Version(),
		Links: []web.LandingLinks{
			{Address: s.path, Text: "Metrics"},
			{Address: s.path + "/seconds", Text: "Metrics of the last seconds"},
			{Address: "/live/", Text: "Live page"},
		},
		Profiling: "false",
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+s.path, t.handler)
	mux.Handle("GET "+s.path+"/seconds", seconds)
	mux.Handle("GET /live/", t.live)
	mux.Handle("GET /{$}", landing)
	serving := s.logger
	if s.webConfig == "" {
		serving = promslog.NewNopLogger() // it would only say where it listens; the commands do
	}
	t.server = start(seconds.Watch(listener), mux, s.logger, func(h *http.Server, l net.Listener) error {
		return web.Serve(l, h, &web.FlagConfig{WebConfigFile: &s.webConfig}, serving)
	})
	if t.log != nil {
		t.stopLog = exporter.Start(t.log.Run)
	}
	for _, p := range pushers {
		t.stopPush = append(t.stopPush, exporter.Start(p.Run))
	}
	if limits != nil {
		t.stopLimit = follow(limits)
	}
	return t, nil
}

// follow reads limits again on SIGHUP and when their file changes. It returns the way to stop it.
func follow(limits *limitfile.Watcher) (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = limits.Run(ctx, hup) // it ends with ctx
	}()
	return func() {
		signal.Stop(hup)
		cancel()
		<-done
	}
}

// url is where the metrics page is.
func (t *telemetry) url() string {
	scheme := "http"
	if t.webConfig != "" {
		if b, err := os.ReadFile(t.webConfig); err == nil && bytes.Contains(b, []byte("tls_server_config")) {
			scheme = "https"
		}
	}
	return scheme + "://" + t.address() + t.path
}

// finishLog writes the log to the end of the second that is open.
func (t *telemetry) finishLog() error { return t.stopLog() }

// stop ends the log and the pushes, with the last second in them, and then the page.
func (t *telemetry) stop() error {
	t.stopLimit()
	stops := append([]func() error{t.stopLog}, t.stopPush...)
	errs := make([]error, len(stops))
	var all sync.WaitGroup
	for i, stop := range stops { // all of them wait for the same second
		all.Go(func() { errs[i] = stop() })
	}
	all.Wait()
	t.live.Close() // or the server would wait for its viewers
	return errors.Join(errors.Join(errs...), t.server.stop())
}
