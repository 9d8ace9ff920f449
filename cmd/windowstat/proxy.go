package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
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
500 or more is an exception, and so is an upstream that cannot be reached, for which the client gets a 502, or does
not answer in time, for which it gets a 504. Requests and answers pass as they are. With --limits.file, requests over a limit are answered with 429 and do not reach the upstream.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "upstream", Usage: "`URL` of the service, such as http://127.0.0.1:8000 (required)"},
			&cli.StringFlag{Name: "proxy.listen-address", Value: "127.0.0.1:8080", Usage: "`ADDRESS` for the clients, host:port"},
			&cli.DurationFlag{Name: "proxy.upstream-timeout", Value: 30 * time.Second, Usage: "how long the upstream may take to begin its answer"},
			&cli.IntFlag{Name: "proxy.path-depth", Value: httpstat.DefaultDepth, Usage: "how many segments of a path a resource's name keeps"},
			&cli.StringFlag{Name: "proxy.origin-header", Usage: "`HEADER` of a request that says who sends it, its origin"},
			&cli.IntFlag{Name: "max-origins", Value: collector.DefaultMaxOrigins, Usage: "how many origins are kept apart for each resource"},
			&cli.DurationFlag{Name: "retire-after", Value: collector.DefaultRetireAfter, Usage: "how long a resource or an origin must be idle until it is forgotten, at least 10m2s; negative is never"},
			&cli.IntFlag{Name: "max-resources", Value: 1000, Usage: "how many resources are kept apart; calls of all others are counted together, as _other"},
		}, append(boundFlags(), telemetryFlags()...)...),
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
	origin   string // header
	bounds   bounds
}

func newProxy(c *cli.Context) (proxy, error) {
	s, err := parseSettings(c, c.App.ErrWriter)
	p := proxy{
		settings: s, clients: c.String("proxy.listen-address"),
		timeout: c.Duration("proxy.upstream-timeout"), depth: c.Int("proxy.path-depth"),
		origin: c.String("proxy.origin-header"),
	}
	errs := []error{noArguments(c), err}
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	p.bounds, err = parseBounds(c, openFiles())
	errs = append(errs, err)
	p.upstream, err = parseUpstream(c.String("upstream"))
	wrong("upstream", err)
	wrong("proxy.listen-address", checkAddress(p.clients))
	if p.timeout <= 0 {
		wrong("proxy.upstream-timeout", fmt.Errorf("%v is not positive", p.timeout))
	}
	wrong("proxy.path-depth", checkDepth(p.depth))
	if p.origin != "" && !validHeader.MatchString(p.origin) {
		wrong("proxy.origin-header", fmt.Errorf("%q is not a header's name, such as X-Client", p.origin))
	}
	p.Collector = collector.Options{
		MaxResources: c.Int("max-resources"), MaxOrigins: c.Int("max-origins"), RetireAfter: c.Duration("retire-after"),
	}
	return p, errors.Join(append(errs, p.check())...)
}

func checkDepth(depth int) error {
	const deepest = 16
	if depth < 1 || depth > deepest {
		return fmt.Errorf("%d is not between 1 and %d", depth, deepest)
	}
	return nil
}

// validHeader is a token as HTTP has them.
var validHeader = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")

func parseUpstream(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is required: the URL of the service, such as http://127.0.0.1:8000")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port: %w", s, errors.Unwrap(err))
	}
	if port := u.Port(); port != "" {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return nil, fmt.Errorf("%q: port %q is not a number from 0 to 65535", s, port)
		}
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not http://host:port or https://host:port, with a path at most", s)
	}
	return u, nil
}

func (p proxy) run(c *cli.Context) error {
	tele, err := startTelemetry(p.settings)
	if err != nil {
		return err
	}
	var opts []httpstat.Option
	if p.origin != "" {
		opts = append(opts, httpstat.OriginHeader(p.origin))
	}
	h := httpstat.Handler(tele.Collector, httpstat.PathName(p.depth), p.handler(), opts...)
	front, err := listen(p.clients, h, p.logger, p.bounds)
	if err != nil {
		return errors.Join(fmt.Errorf("--proxy.listen-address: %w", err), tele.stop())
	}
	p.logger.Info("connections are bounded", "clients", p.bounds.Conns, "of_a_host", p.bounds.ConnsPerHost,
		"of_pages", pageConnections(openFiles()), "open_files", openFiles())
	fmt.Fprintf(c.App.Writer, "proxy       http://%s  in front of %s\nmetrics     %s\n", front.address(), p.upstream, tele.url())
	if p.Log.Dir != "" {
		fmt.Fprintf(c.App.Writer, "metric log  %s\n", p.Log.Dir)
	}
	select {
	case <-c.Context.Done():
	case <-front.ended:
	case <-tele.ended:
	}
	return errors.Join(front.stop(), tele.stop())
}
