package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/proxy"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/collector"
)

// proxyCommand is windowstat proxy, see package proxy. Its flags have four parts: proxyFlags for counting,
// [routes.Naming] for names, boundFlags for the limits of clients, and [telemetry.Options] for the exporters.
func proxyCommand() *cli.Command {
	var o proxy.Options
	// The name of the application is in the names of the files of the metric log. The proxy has no flag for it.
	o.Telemetry.Exporter.App = "proxy"
	set := slices.Concat(proxyFlags(&o), o.Naming.Flags("proxy.path-depth"), boundFlags(&o.Bounds), o.Telemetry.Flags())
	return set.Command(&cli.Command{
		Name:  "proxy",
		Usage: "run a reverse proxy that counts the calls of any HTTP service",
		Description: `The resource of a request is the route that it matches (--routes, --route). Otherwise it is
the method and the path, with numbers, UUIDs, hashes, dates and e-mail addresses replaced by :id. A path becomes a
name when the service has answered it with success (2xx, 101 or 304). Until then it counts for the resource unmatched.
The most frequent values of a path segment have their own names (--max-path-values). All others are *. When there are
--max-resources names, a new name replaces the one with the longest idle time, if that is ten minutes or more. So
clients cannot fill the table with made-up paths, and a name from a path has its first calls in unmatched. Give routes
if these calls matter. With --metric-log.dir the proxy remembers names over a restart.

Requests are counted with the status that the client received. A response of 500 or more is an exception, unless
--exception-status is given. An upstream that cannot be reached is an exception, too, and the client receives a 502.
The same holds for an upstream that does not respond in time; the client receives a 504. A client that hangs up
before the response begins is a 499, as in the log of nginx, and not an exception. Requests and responses are forwarded
unchanged. With --limits.file, requests over a limit receive a 429 and do not reach the upstream.`,
		Action: set.Action(o.Check, o.Run),
	})
}

// proxyFlags returns the flags of the upstream, of the service of clients, and of counting.
func proxyFlags(o *proxy.Options) flags.Set {
	// These are options of the Collector, which package telemetry creates later.
	counted := &o.Telemetry.Exporter.Collector
	return flags.Set{
		{
			// The flag has no default. The proxy is a reverse proxy: it sends all requests to this URL, whatever host
			// they name.
			Name: "upstream", Value: flags.Parsed(&o.Upstream, "", proxy.ParseUpstream), Of: "Upstream",
			Usage: "`URL` of the service, such as http://127.0.0.1:8000 (required)",
		},
		{
			// The default is the loopback interface, and a first try opens no port to the network.
			Name: "proxy.listen-address", Value: flags.Parsed(&o.Listen, "127.0.0.1:8080", flags.ParseAddress),
			Usage: "`ADDRESS` for clients, host:port",
		},
		{
			// The limit does not include the body of the response, because a body may be a stream of events without an
			// end.
			Name: "proxy.upstream-timeout", Value: flags.Number(&o.Timeout, 30*time.Second), Of: "Timeout", Zero: true,
			Usage: "`DURATION` until the upstream must begin its response",
		},
		{
			// Errors of clients (4xx) are not failures of the service.
			Name: "exception-status", Value: flags.Parsed(&o.Exceptions, "500-999", replay.ParseStatuses),
			Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503",
		},
		{
			// Probes and static files would hide the calls of users in the total.
			Name: "skip", Value: flags.List((*[]*http.ServeMux)(&o.Skip), routes.ParsePattern),
			Usage: "`PATTERN` of requests that are neither counted nor limited, as in Go's http.ServeMux: " +
				"/healthz, /static/, OPTIONS /; repeatable",
		},
		{
			// A load balancer needs this time to notice that the proxy is not ready, and to select another instance.
			Name: "shutdown.delay", Value: flags.Number(&o.ShutdownDelay, 0), Of: "ShutdownDelay", Zero: true,
			Usage: "`DURATION` of service after the signal to end, while /-/ready returns 503; then requests have " +
				"ten seconds to end",
		},
		{
			// A client can send any value. The number of origins is therefore limited by --max-origins.
			Name: "proxy.origin-header", Value: flags.String(&o.OriginHeader, ""), Of: "OriginHeader",
			Usage: "`HEADER` of a request that names its caller, the origin",
		},
		{
			// Each origin of each resource has its own counts, so memory grows with the product of both.
			Name: "max-origins", Value: flags.Number(&counted.MaxOrigins, collector.DefaultMaxOrigins),
			Of: "Collector.MaxOrigins", Needs: []string{"proxy.origin-header"},
			Usage: "maximum `NUMBER` of origins of a resource that are counted separately",
		},
		{
			// Routes are from the user and always have a name. The limit is on the names that clients create by their
			// paths.
			Name: "max-resources", Value: flags.Number(&counted.MaxResources, 1000), Of: "Collector.MaxResources",
			Usage: "maximum `NUMBER` of resources in addition to routes; calls of all others count for _other",
		},
	}
}

// boundFlags returns the flags that limit the resources of a single client: connections, memory for headers, and time.
// Package server documents why each limit exists.
//
// All limits have a default, so a proxy on the internet is protected without settings. For the numbers of connections,
// 0 means a limit that depends on the number of files that the process may open.
func boundFlags(b *server.Bounds) flags.Set {
	return flags.Set{
		{
			// The proxy trusts these headers only from the given networks, because a client can write any address into
			// X-Forwarded-For.
			Name: "proxy.trusted-proxies", Value: flags.List(&b.Proxies, flags.ParseNetwork),
			Usage: "`NETWORK` of proxies in front of this one, such as 10.0.0.7 or 10.0.0.0/8, whose X-Forwarded " +
				"headers are kept; repeatable",
		},
		{
			// A client that sends its headers byte by byte would otherwise occupy a connection forever.
			Name: "proxy.header-timeout", Value: flags.Number(&b.Header, server.DefaultHeader),
			Of: "Header", Zero: true,
			Usage: "`DURATION` until a client must have sent the headers of a request",
		},
		{
			// The proxy needs this memory for each connection before it can refuse the request.
			Name: "proxy.max-header-bytes", Value: flags.Number(&b.HeaderBytes, server.DefaultHeaderBytes),
			Of: "HeaderBytes", Zero: true,
			Usage: "maximum `NUMBER` of bytes of a request's headers, including its first line",
		},
		{
			// There is no limit on the whole time of a body: uploads and streams may be long if they make progress.
			Name: "proxy.stall-timeout", Value: flags.Number(&b.Stall, server.DefaultStall), Of: "Stall", Zero: true,
			Usage: "`DURATION` for which a body may make no progress because its sender or receiver is idle",
		},
		{
			// Each idle connection takes one of the open files that the process may have.
			Name: "proxy.idle-timeout", Value: flags.Number(&b.Idle, server.DefaultIdle), Of: "Idle", Zero: true,
			Usage: "`DURATION` for which a connection of a client may wait for its next request",
		},
		{
			// Each client needs two open files: its connection and the one to the upstream.
			Name: "proxy.max-connections", Value: flags.Number(&b.Conns, 0), Of: "Conns", Zero: true,
			Usage: fmt.Sprintf("maximum `NUMBER` of connected clients (0: as many as open files allow, at most %d)",
				server.DefaultConns),
		},
		{
			// A single host must not take the connections of all others. A trusted proxy carries many clients, so it is
			// exempt.
			Name: "proxy.max-connections-per-host", Value: flags.Number(&b.ConnsPerHost, 0),
			Of: "ConnsPerHost", Zero: true,
			Usage: "maximum `NUMBER` of connected clients of a host (IPv6: a /64) that is not a trusted proxy (0: " +
				"half of all)",
		},
	}.Under("Clients")
}
