package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/proxy"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

func proxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "proxy",
		Usage: "put a reverse proxy that counts in front of any HTTP service",
		Description: `The resource of a request is the route that it matches (--routes, --route). Otherwise it is its method and path, with
numbers, UUIDs, hashes, dates and e-mail addresses collapsed to :id, once the service has answered it with success (2xx, 101
or 304); until then it counts for the resource unmatched. Of the values of a path segment those that are called most are told
apart (--max-path-values), any other is *. When there are --max-resources, the one that has been idle longest makes room, once
that is for ten minutes. So nobody fills the table by making up paths, and a name from a path has its first calls in unmatched:
give routes where these matter. With --metric-log.dir names are remembered when the proxy is restarted.

Requests are counted with the status that the client got. A response of 500 or more is an exception, unless other statuses
are given, and so is an upstream that cannot be reached, for which the client gets a 502, or does not answer in time, for which
it gets a 504. A client that did not wait for the answer is a 499, which nobody has registered: its code is other. Requests
and answers pass as they are. With --limits.file, requests over a limit are answered with 429 and do not reach the upstream.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "upstream", Usage: "`URL` of the service, such as http://127.0.0.1:8000 (required)"},
			&cli.StringFlag{Name: "proxy.listen-address", Value: "127.0.0.1:8080", Usage: "`ADDRESS` for the clients, host:port"},
			&cli.DurationFlag{Name: "proxy.upstream-timeout", Value: 30 * time.Second, Usage: "how long the upstream may take to begin its answer"},
			&cli.IntFlag{Name: "proxy.path-depth", Value: httpstat.DefaultDepth, Usage: "how many segments of a path a resource's name keeps"},
			&cli.StringFlag{Name: "exception-status", Value: "500-999", Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503"},
			&cli.StringSliceFlag{Name: "skip", Usage: "`PATTERN` of requests that are not counted, as in Go's http.ServeMux: /healthz, /static/, OPTIONS /; no limit is asked; repeatable"},
			&cli.StringFlag{Name: "proxy.origin-header", Usage: "`HEADER` of a request that says who sends it, its origin"},
			&cli.IntFlag{Name: "max-origins", Value: collector.DefaultMaxOrigins, Usage: "how many origins are kept apart for each resource"},
			&cli.DurationFlag{Name: "retire-after", Value: collector.DefaultRetireAfter, Usage: "how long a resource or an origin must be idle until it is forgotten, at least 10m2s; negative is only to make room"},
			&cli.IntFlag{Name: "max-resources", Value: 1000, Usage: "how many resources are kept apart beside routes; calls of all others are counted together, as _other"},
		}, namingFlags(), boundFlags(), telemetryFlags()),
		Action: func(c *cli.Context) error {
			p, err := newProxy(c)
			if err != nil {
				return usage(err)
			}
			return p.run(c)
		},
	}
}

// proxying is what the flags say.
type proxying struct {
	settings
	naming
	proxy   proxy.Options
	clients string // address
	origin  string // header
	bounds  bounds

	exceptions replay.Statuses
	skip       routes.Set
}

func newProxy(c *cli.Context) (*proxying, error) {
	s, err := parseSettings(c, c.App.ErrWriter)
	p := &proxying{settings: s, clients: c.String("proxy.listen-address"), origin: c.String("proxy.origin-header")}
	errs := flagErrors{noArguments(c), err}
	p.bounds, err = parseBounds(c, openFiles())
	errs = append(errs, err)
	p.proxy = proxy.Options{
		Timeout: c.Duration("proxy.upstream-timeout"), Stall: p.bounds.Stall, Conns: p.bounds.Conns, Trusted: p.bounds.Proxies, Logger: s.logger,
	}
	p.proxy.Upstream, err = proxy.ParseUpstream(c.String("upstream"))
	errs.add("upstream", err)
	errs.add("proxy.listen-address", checkAddress(p.clients))
	if p.proxy.Timeout <= 0 {
		errs.add("proxy.upstream-timeout", fmt.Errorf("%v is not positive", p.proxy.Timeout))
	}
	p.naming, err = parseNaming(c, "proxy.path-depth")
	errs = append(errs, err)
	if p.origin != "" && !validHeader.MatchString(p.origin) {
		errs.add("proxy.origin-header", fmt.Errorf("%q is not a header's name, such as X-Client", p.origin))
	}
	if p.origin == "" && c.IsSet("max-origins") {
		errs.add("max-origins", errors.New("needs --proxy.origin-header"))
	}
	p.exceptions, err = replay.ParseStatuses(c.String("exception-status"))
	errs.add("exception-status", err)
	p.skip, err = routes.ParseSet(c.StringSlice("skip"))
	errs.add("skip", err)
	p.Collector = collector.Options{
		Given: p.given(), MaxResources: c.Int("max-resources"), MaxOrigins: c.Int("max-origins"), RetireAfter: c.Duration("retire-after"),
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

func (p *proxying) run(c *cli.Context) error {
	p.earn.Host = p.proxy.Client
	names, err := httpstat.NewNames(p.earn)
	if err != nil {
		return err
	}
	tele, err := startTelemetry(p.settings)
	if err != nil {
		return err
	}
	saveNames := keepNames(tele, names)
	opts := []httpstat.Option{httpstat.Earn(names), httpstat.Exception(p.exceptions.Has), httpstat.Skip(p.skip.Match)}
	if p.origin != "" {
		opts = append(opts, httpstat.OriginHeader(p.origin))
	}
	h := httpstat.Handler(tele.Collector, p.name, proxy.Handler(p.proxy), opts...)
	front, err := listen(p.clients, h, p.logger, p.bounds)
	if err != nil {
		saveNames()
		return errors.Join(fmt.Errorf("--proxy.listen-address: %w", err), tele.stop())
	}
	p.logger.Info("connections are bounded", "clients", p.bounds.Conns, "of_a_host", p.bounds.ConnsPerHost,
		"of_pages", pageConnections(openFiles()), "open_files", openFiles())
	fmt.Fprintf(c.App.Writer, "proxy       http://%s  in front of %s\nmetrics     %s\n", front.address(), p.proxy.Upstream, tele.url())
	if p.Log.Dir != "" {
		fmt.Fprintf(c.App.Writer, "metric log  %s\n", p.Log.Dir)
	}
	select {
	case <-c.Context.Done():
	case <-front.ended:
	case <-tele.ended:
	}
	err = front.stop()
	saveNames()
	return errors.Join(err, tele.stop())
}
