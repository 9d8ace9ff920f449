package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/exporter"
)

// telemetryFlags are the flags of every command that serves statistics.
func telemetryFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "web.listen-address", Value: cli.NewStringSlice("127.0.0.1:9719"), Usage: "`ADDRESS` for the metrics page, host:port; repeatable, and all are served"},
		&cli.StringFlag{Name: "web.config.file", Usage: "`FILE` that enables TLS or authentication, in the exporters' web configuration format; HTTP/2 is off unless the file has http2: true"},
		&cli.StringFlag{Name: "web.telemetry-path", Value: "/metrics", Usage: "`PATH` of the metrics page"},
		&cli.StringSliceFlag{Name: "web.proxies", Usage: "`NETWORK` of proxies before the pages that add no X-Forwarded-For, such as 10.0.0.7 or 10.0.0.0/8; repeatable"},
		&cli.BoolFlag{Name: "web.enable-pprof", Usage: "serve profiles of this process at /debug/pprof/, to whoever reaches the metrics page"},
		&cli.StringFlag{Name: "metrics.by", Usage: "`LABEL` that the metrics of resources get besides resource: origin or entrance"},
		&cli.BoolFlag{Name: "metrics.histograms-by", Usage: "give the histogram this label, too"},
		&cli.StringFlag{Name: "limits.file", Usage: "`FILE` of limits, YAML or JSON; read again on SIGHUP and when it changes"},
		&cli.StringFlag{Name: "log.level", Value: "info", Usage: "`LEVEL` of messages: " + strings.Join(promslog.LevelFlagOptions, ", ")},
		&cli.StringFlag{Name: "log.format", Value: "logfmt", Usage: "`FORMAT` of messages: " + strings.Join(promslog.FormatFlagOptions, " or ")},
	}, append(logFlags(), pushFlags()...)...)
}

// settings are the values of the flags.
type settings struct {
	listen    []string
	webConfig string
	pprof     bool
	logger    *slog.Logger
	pushes    []string // what the flags of each push begin with
	exporter.Options
}

// parseSettings reads the flags. What is wrong with the Options shows in [settings.check].
func parseSettings(c *cli.Context, stderr io.Writer) (settings, error) {
	s := settings{listen: c.StringSlice("web.listen-address"), webConfig: c.String("web.config.file"), pprof: c.Bool("web.enable-pprof")}
	var errs flagErrors
	level, format := promslog.NewLevel(), promslog.NewFormat()
	if err := level.Set(c.String("log.level")); err != nil {
		errs.add("log.level", fmt.Errorf("%q is not one of %s", c.String("log.level"), strings.Join(promslog.LevelFlagOptions, ", ")))
	}
	if err := format.Set(c.String("log.format")); err != nil {
		errs.add("log.format", fmt.Errorf("%q is not one of %s", c.String("log.format"), strings.Join(promslog.FormatFlagOptions, ", ")))
	}
	s.logger = promslog.New(&promslog.Config{Level: level, Format: format, Writer: stderr})
	for _, address := range s.listen {
		errs.add("web.listen-address", checkAddress(address))
	}
	if s.webConfig != "" {
		errs.add("web.config.file", web.Validate(s.webConfig))
	}
	s.App, s.Logger, s.MetricsPath, s.LimitsFile = c.Command.Name, s.logger, c.String("web.telemetry-path"), c.String("limits.file")
	s.Metrics.By, s.Metrics.HistogramsBy = c.String("metrics.by"), c.Bool("metrics.histograms-by")
	var err error
	s.Seconds.Proxies, err = parseNetworks(c.StringSlice("web.proxies"))
	errs.add("web.proxies", err)
	s.Log, err = parseLog(c)
	errs = append(errs, err, s.parsePushes(c), s.parseVerify(c), empty(c))
	return s, errors.Join(errs...)
}

// parseNetworks reads addresses and networks. The error names every one that is wrong.
func parseNetworks(list []string) (networks []netip.Prefix, err error) {
	for _, s := range list {
		network, wrong := netip.ParsePrefix(s)
		if address, is := netip.ParseAddr(s); is == nil && address.Zone() == "" {
			network, wrong = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%q is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8", s))
		}
		networks = append(networks, network.Masked())
	}
	return networks, err
}

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

// telemetry is what a serving command runs beside its own work: the ways out, and a server of their pages, which may have
// TLS and passwords.
type telemetry struct {
	*exporter.Exporter
	*server
	settings
	finish func() error // ends the ways out
}

// startTelemetry makes the Collector, listens, and starts the ways out. On an error nothing is left running.
func startTelemetry(s settings) (*telemetry, error) {
	// The ports first: whoever has them keeps a second process with the same flags away from the log's files.
	listeners, err := listenAll(s.listen)
	if err != nil {
		return nil, fmt.Errorf("--web.listen-address: %w", err)
	}
	s.nameInstance(listeners[0].Addr())
	x, err := exporter.New(s.Options)
	if err != nil {
		return nil, errors.Join(s.flagged(err), closeAll(listeners))
	}
	bounds := pageBounds()
	bounds.Proxies, bounds.Conns = s.Seconds.Proxies, max(1, bounds.Conns/len(listeners))
	for i, l := range listeners {
		listeners[i] = bounds.listener(l, s.logger)
	}
	t := &telemetry{Exporter: x, settings: s, finish: x.Start()}
	if x.Limits != nil {
		stop, end := reloadOnHangup(x), t.finish
		t.finish = sync.OnceValue(func() error { stop(); return end() })
	}
	serving := s.logger
	if s.webConfig == "" {
		serving = promslog.NewNopLogger() // it would only say where it listens; the commands do
	}
	pages := x.Server()
	if s.pprof {
		pages.Handler = withProfiles(pages.Handler)
	}
	if http2Enabled(s.webConfig) {
		pages.Protocols.SetHTTP2(true)
	}
	t.server = start(listeners[0].Addr(), pages, func(h *http.Server) error {
		return web.ServeMultiple(listeners, h, &web.FlagConfig{WebConfigFile: &s.webConfig}, serving)
	})
	for _, l := range listeners[1:] {
		s.logger.Info("the pages are served here, too", "address", l.Addr())
	}
	return t, nil
}

// nameInstance gives pushes without a label instance the name of this process: host and port.
func (s *settings) nameInstance(listening net.Addr) {
	host, err := os.Hostname()
	_, port, errPort := net.SplitHostPort(listening.String())
	if errors.Join(err, errPort) != nil {
		return
	}
	for i := range s.Push {
		labels := map[string]string{"instance": net.JoinHostPort(host, port)}
		maps.Copy(labels, s.Push[i].Labels)
		s.Push[i].Labels = labels
	}
}

// http2Enabled reports whether the file of --web.config.file enables HTTP/2. Unlike for other exporters, it is off unless the
// file says so.
func http2Enabled(file string) bool {
	var config struct {
		HTTP struct {
			HTTP2 bool `yaml:"http2"`
		} `yaml:"http_server_config"`
	}
	b, err := os.ReadFile(file)
	return err == nil && yaml.Unmarshal(b, &config) == nil && config.HTTP.HTTP2
}

// withProfiles serves Go's profiles beside the pages. They are nowhere else: the default mux of net/http, where importing
// net/http/pprof puts them, is not served. The command line is left out: a URL with a token may be on it.
func withProfiles(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// reloadOnHangup reads limits again on SIGHUP, until it is stopped.
func reloadOnHangup(x *exporter.Exporter) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for range hangup {
			_ = x.Limits.Reload() // it has been logged
		}
	}()
	return func() { signal.Stop(hangup); close(hangup) }
}

// url is where the metrics page is.
func (t *telemetry) url() string {
	scheme := "http"
	if t.webConfig != "" {
		if b, err := os.ReadFile(t.webConfig); err == nil && bytes.Contains(b, []byte("tls_server_config")) {
			scheme = "https"
		}
	}
	return scheme + "://" + t.address() + t.MetricsPath
}

// stop ends the ways out, with the last second in them, and then the pages.
func (t *telemetry) stop() error { return errors.Join(t.finish(), t.server.stop()) }
