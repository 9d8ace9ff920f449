package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func proxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "proxy",
		Usage: "put a reverse proxy that counts in front of any HTTP service",
		Description: `The resource of a request is its method and path, with numbers, UUIDs and hashes collapsed to :id. A response of
500 or more is an exception, and so is an upstream that cannot be reached or does not answer in time: the client
gets a 502 then.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "upstream", Usage: "`URL` of the service, such as http://127.0.0.1:8000 (required)"},
			&cli.StringFlag{Name: "proxy.listen-address", Value: "127.0.0.1:8080", Usage: "`ADDRESS` for the clients, host:port"},
			&cli.DurationFlag{Name: "proxy.upstream-timeout", Value: 30 * time.Second, Usage: "how long the upstream may take to begin its answer"},
			&cli.IntFlag{Name: "proxy.path-depth", Value: httpstat.DefaultDepth, Usage: "how many segments of a path a resource's name keeps"},
			&cli.IntFlag{Name: "max-resources", Value: 1000, Usage: "how many resources are kept apart; calls of all others are counted together, as _other"},
		}, telemetryFlags()...),
		Action: func(c *cli.Context) error {
			p, err := newProxy(c)
			if err != nil {
				return usage(err)
			}
			return p.run(c)
		},
	}
}

type proxy struct {
	settings
	upstream *url.URL
	clients  string
	timeout  time.Duration
	depth    int
	stats    *collector.Collector
}

func newProxy(c *cli.Context) (proxy, error) {
	s, err := parseSettings(c, c.App.ErrWriter)
	p := proxy{
		settings: s, clients: c.String("proxy.listen-address"),
		timeout: c.Duration("proxy.upstream-timeout"), depth: c.Int("proxy.path-depth"),
	}
	errs := []error{noArguments(c), err}
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	p.upstream, err = parseUpstream(c.String("upstream"))
	wrong("upstream", err)
	wrong("proxy.listen-address", checkAddress(p.clients))
	if p.timeout <= 0 {
		wrong("proxy.upstream-timeout", fmt.Errorf("%v is not positive", p.timeout))
	}
	const deepest = 16
	if p.depth < 1 || p.depth > deepest {
		wrong("proxy.path-depth", fmt.Errorf("%d is not between 1 and %d", p.depth, deepest))
	}
	if limit := c.Int("max-resources"); limit < 1 {
		wrong("max-resources", fmt.Errorf("%d is below 1", limit))
	} else if p.stats, err = collector.New(collector.Options{MaxResources: limit}); err != nil {
		errs = append(errs, err)
	}
	return p, errors.Join(errs...)
}

func parseUpstream(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is required: the URL of the service, such as http://127.0.0.1:8000")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port, with a path at most", s)
	}
	return u, nil
}

func (p proxy) run(c *cli.Context) error {
	tele, err := startTelemetry(p.stats, "proxy", p.settings)
	if err != nil {
		return err
	}
	h := httpstat.Handler(p.stats, httpstat.PathName(p.depth), p.handler())
	front, err := start(p.clients, h, p.logger, (*http.Server).Serve)
	if err != nil {
		return errors.Join(fmt.Errorf("--proxy.listen-address: %w", err), tele.stop())
	}
	fmt.Fprintf(c.App.Writer, "proxy       http://%s  in front of %s\nmetrics     %s\n", front.address(), p.upstream, tele.url())
	if p.logDir != "" {
		fmt.Fprintf(c.App.Writer, "metric log  %s\n", p.logDir)
	}
	select {
	case <-c.Context.Done():
	case <-front.ended:
	case <-tele.ended:
	}
	return errors.Join(front.stop(), tele.stop())
}

// statusClientGone is nginx's status for a client that did not wait for the answer. Nobody reads it, but it is no
// fault of the service, and so below 500.
const statusClientGone = 499

// handler is the reverse proxy.
func (p proxy) handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.upstream)
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: p.timeout}).DialContext,
			ResponseHeaderTimeout: p.timeout,
			TLSHandshakeTimeout:   10 * time.Second,
			MaxIdleConnsPerHost:   512,
			IdleConnTimeout:       90 * time.Second,
			ForceAttemptHTTP2:     true,
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
				w.WriteHeader(statusClientGone)
				return
			}
			p.logger.Debug("no answer from the upstream", "method", r.Method, "path", r.URL.Path, "err", err)
			http.Error(w, "the upstream did not answer", http.StatusBadGateway)
		},
		ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}
}
