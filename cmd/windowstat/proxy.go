package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/proxy"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/collector"
)

// proxyCommand is windowstat proxy, see package proxy. Its flags are of four kinds, each with a function of its own: what is counted,
// how it is named, what a client may hold, and the ways out.
func proxyCommand() *cli.Command {
	var o proxy.Options
	o.Telemetry.Exporter.App = "proxy"
	set := slices.Concat(proxyFlags(&o), o.Naming.Flags("proxy.path-depth"), boundFlags(&o.Bounds), o.Telemetry.Flags())
	return &cli.Command{
		Name:  "proxy",
		Usage: "put a reverse proxy that counts in front of any HTTP service",
		Description: `The resource of a request is the route that it matches (--routes, --route). Otherwise it is its method and path, with
numbers, UUIDs, hashes, dates and e-mail addresses collapsed to :id, once the service has answered it with success (2xx, 101
or 304); until then it counts for the resource unmatched. Of the values of a path segment the most frequent have names of their
own (--max-path-values), all others are *. When there are --max-resources, a new name takes the place of the one that has been
idle longest, if that is ten minutes or more. So nobody fills the table by making up paths, and a name from a path has its first
calls in unmatched: give routes where these matter. With --metric-log.dir names are remembered when the proxy is restarted.

Requests are counted with the status that the client got. A response of 500 or more is an exception, unless other statuses
are given, and so is an upstream that cannot be reached, for which the client gets a 502, or does not answer in time, for which
it gets a 504. A client that did not wait for the response is a 499, which nobody has registered: its code is other. Requests
and responses pass as they are. With --limits.file, requests over a limit are answered with 429 and do not reach the upstream.`,
		Flags:  set.Flags(),
		Action: set.Action(o.Check, o.Run),
	}
}

// proxyFlags are the flags of what is counted. Who may connect is in boundFlags, and how calls are named in [routes.Naming].
func proxyFlags(o *proxy.Options) flags.Set {
	counted := &o.Telemetry.Exporter.Collector
	return flags.Set{
		{Of: "Upstream", Flag: &cli.GenericFlag{Name: "upstream", Value: flags.Value(&o.Upstream, "", proxy.ParseUpstream), Usage: "`URL` of the service, such as http://127.0.0.1:8000 (required)"}},
		{Flag: &cli.GenericFlag{Name: "proxy.listen-address", Value: flags.Value(&o.Listen, "127.0.0.1:8080", flags.ParseAddress), Usage: "`ADDRESS` for the clients, host:port"}},
		{Of: "Timeout", Zero: true, Flag: &cli.DurationFlag{Name: "proxy.upstream-timeout", Value: 30 * time.Second, Destination: &o.Timeout, Usage: "how long the upstream may take to begin its response"}},
		{Flag: &cli.GenericFlag{Name: "exception-status", Value: flags.Value(&o.Exceptions, "500-999", replay.ParseStatuses), Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503"}},
		{Flag: &cli.GenericFlag{Name: "skip", Value: flags.Values((*[]*http.ServeMux)(&o.Skip), routes.ParsePattern), Usage: "`PATTERN` of requests that are neither counted nor limited, as in Go's http.ServeMux: /healthz, /static/, OPTIONS /; repeatable"}},
		{Of: "ShutdownDelay", Zero: true, Flag: &cli.DurationFlag{Name: "shutdown.delay", Destination: &o.ShutdownDelay, Usage: "how long clients are still served after the signal to end, while /-/ready says 503; then their requests have ten seconds"}},
		{Of: "OriginHeader", Flag: &cli.StringFlag{Name: "proxy.origin-header", Destination: &o.OriginHeader, Usage: "`HEADER` of a request that says who sends it, its origin"}},
		{Of: "Collector.MaxOrigins", Needs: []string{"proxy.origin-header"}, Flag: &cli.IntFlag{Name: "max-origins", Value: collector.DefaultMaxOrigins, Destination: &counted.MaxOrigins, Usage: "how many origins of a resource are counted apart"}},
		{Of: "Collector.RetireAfter", Flag: &cli.DurationFlag{Name: "retire-after", Value: collector.DefaultRetireAfter, Destination: &counted.RetireAfter, Usage: "how long a resource or an origin must be idle until its series are dropped, at least 10m2s; if negative, only when a new one needs the place"}},
		{Of: "Collector.MaxResources", Flag: &cli.IntFlag{Name: "max-resources", Value: 1000, Destination: &counted.MaxResources, Usage: "how many resources are counted apart, besides routes; calls of all others are counted together, as _other"}},
	}
}

// boundFlags are the flags of what a client may hold of the proxy: a connection, memory for headers, and time.
func boundFlags(b *server.Bounds) flags.Set {
	return flags.Set{
		{Flag: &cli.GenericFlag{Name: "proxy.trusted-proxies", Value: flags.Values(&b.Proxies, flags.ParseNetwork), Usage: "`NETWORK` of proxies in front of this one, such as 10.0.0.7 or 10.0.0.0/8: their X-Forwarded headers are kept; repeatable"}},
		{Of: "Header", Zero: true, Flag: &cli.DurationFlag{Name: "proxy.header-timeout", Value: server.DefaultHeader, Destination: &b.Header, Usage: "how long a client may take to send the headers of a request"}},
		{Of: "HeaderBytes", Zero: true, Flag: &cli.IntFlag{Name: "proxy.max-header-bytes", Value: server.DefaultHeaderBytes, Destination: &b.HeaderBytes, Usage: "how many bytes the headers of a request may have, its first line included"}},
		{Of: "Stall", Zero: true, Flag: &cli.DurationFlag{Name: "proxy.stall-timeout", Value: server.DefaultStall, Destination: &b.Stall, Usage: "how long a body may make no progress while its sender or receiver does nothing"}},
		{Of: "Idle", Zero: true, Flag: &cli.DurationFlag{Name: "proxy.idle-timeout", Value: server.DefaultIdle, Destination: &b.Idle, Usage: "how long a client's connection may wait for its next request"}},
		{Of: "Conns", Zero: true, Flag: &cli.IntFlag{Name: "proxy.max-connections", Destination: &b.Conns, Usage: fmt.Sprintf("how many clients are connected; 0 is as many as open files allow, at most %d", server.DefaultConns)}},
		{Of: "ConnsPerHost", Zero: true, Flag: &cli.IntFlag{Name: "proxy.max-connections-per-host", Destination: &b.ConnsPerHost, Usage: "how many of them are of one host (of IPv6: one /64) that is no trusted proxy; 0 is half of them"}},
	}.Under("Clients")
}
