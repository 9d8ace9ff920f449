package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/otlp"
	"github.com/windowstat/windowstat/collector"
)

// otlpCommand is windowstat otlp, see package otlp. Spans are received on other addresses than the pages, because a
// client that may send spans need not be allowed to read the pages.
func otlpCommand() *cli.Command {
	var o otlp.Options
	// The flags of the receiver come first in the help, because every user of the command needs them.
	set := slices.Concat(otlpFlags(&o), o.Telemetry.Flags())
	return set.Command(&cli.Command{
		Name:  "otlp",
		Usage: "receive OpenTelemetry spans and count them as calls",
		Description: `Receives traces by OTLP, over HTTP (protobuf or JSON) and gRPC, from SDKs, agents and
Collectors. A span of the kind server or consumer is an inbound call. A span of the kind client or producer is an
outbound call. Internal spans and lookups of names (dns.lookup) are not calls. A call passes in the second in which
its span began and completes in the second in which it ended. Its code is the status of HTTP or gRPC. It is an
exception if the span has the status Error. Calls are served one second more than the tolerance behind the current
time, because SDKs send spans in batches, after their ends. Spans that ended before are late: they are reported and
not counted. A span that arrives twice within 90 seconds, by its IDs, service and kind, is counted once.

The name of an inbound call is the method and http.route, rpc.method, or else "inbound" and the name of the span. The
name of an outbound call begins with its target (a peer, database, destination or address): "api.example.com: GET".
All names follow the name of the service: "shop: GET /users/{id}". With --service only spans of that service are
counted, as "GET /users/{id}". Names of inbound calls that contain a path, but no route, are earned, as in "windowstat
proxy". Counts are those of the spans that were received. If SDKs sample, a span counts for as many calls as its
threshold (ot=th: in tracestate) states, and for one call without a threshold.`,
		Action: set.Action(o.Check, o.Run),
	})
}

// otlpFlags returns the flags of the receiver. Unlike proxy and replay, otlp has no flags for names: the service that
// made a span has named it.
func otlpFlags(o *otlp.Options) flags.Set {
	return flags.Set{
		{
			// The defaults are the standard ports of OTLP on the loopback interface, so an SDK on the same host needs
			// no settings.
			Name: "spans.http-listen-address", Value: flags.Parsed(&o.HTTP, otlp.DefaultHTTP, flags.ParseAddress),
			Usage: "`ADDRESS` for OTLP over HTTP, host:port; traces are received at /v1/traces",
		},
		{
			// There is no TLS on these addresses. A receiver for other hosts needs a proxy or a private network in
			// front of it.
			Name: "spans.grpc-listen-address", Value: flags.Parsed(&o.GRPC, otlp.DefaultGRPC, flags.ParseAddress),
			Usage: "`ADDRESS` for OTLP over gRPC, without TLS",
		},
		{
			// The name of a resource begins with the name of the service. This flag omits it, because all resources
			// have the same service.
			Name: "service", Value: flags.String(&o.Service, ""),
			Usage: "`NAME` of the only service whose spans are counted, its service.name",
		},
		{
			// A larger tolerance counts more delayed spans, and delays all seconds by the same time.
			Name: "tolerance", Value: flags.Number(&o.Tolerance, otlp.DefaultTolerance), Of: "Tolerance", Zero: true,
			Usage: "maximum `DURATION` between the end of a span and its arrival, in whole seconds",
		},
		{
			// Names of spans are from clients, so their number must have a limit.
			Name: "max-resources", Value: flags.Number(&o.MaxResources, collector.DefaultMaxResources),
			Of:    "Collector.MaxResources",
			Usage: "maximum `NUMBER` of resources; calls of all others count for _other",
		},
		{
			// A span must be remembered for as long as a client may send it again. The limit bounds the memory for
			// these spans.
			Name: "max-spans", Value: flags.Number(&o.MaxSpans, otlp.DefaultMaxSpans), Of: "MaxSpans", Zero: true,
			Usage: "maximum `NUMBER` of spans that are remembered to detect repeated ones; when it is reached, " +
				"requests are refused until the oldest spans are two minutes old",
		},
		{
			// The default differs between the commands, so this flag is not among the flags of package telemetry.
			Name: "metric-log.app", Value: flags.String(&o.Telemetry.Exporter.App, "otlp"), Of: "App",
			Category: "Metric log", Needs: []string{"metric-log.dir"},
			Usage: "`NAME` of the application in the metric log",
		},
	}
}
