package main

import (
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/otlp"
	"github.com/windowstat/windowstat/collector"
)

// otlpCommand is windowstat otlp, see package otlp. Its addresses are not those of the pages: a client that may send spans need not see the pages.
func otlpCommand() *cli.Command {
	var o otlp.Options
	set := slices.Concat(otlpFlags(&o), o.Telemetry.Flags())
	return &cli.Command{
		Name:  "otlp",
		Usage: "receive OpenTelemetry's spans and count them as calls, in the seconds in which they were",
		Description: `Receives traces by OTLP, over HTTP (protobuf or JSON) and gRPC, from SDKs, agents and Collectors. A span of the kind server or
consumer is an inbound call, one of the kind client or producer an outbound one; internal spans are no calls. A call passes in
the second in which its span began and completes in the one in which it ended, with the status of HTTP or gRPC as its code; it
is an exception if the span has the status Error. It is served a second more than the tolerance behind the present, because SDKs
send spans in batches, after their ends. Spans that ended before that are late: not counted, but reported. A span that comes
twice within 90 seconds is counted once.

A call is named by http.route with the method, by rpc.method, or else by the name of the span, behind the name of its service:
"shop: GET /users/{id}". With --service only that service's spans are counted, as "GET /users/{id}". Names of inbound calls without
a route are earned, as in "windowstat proxy". Counts are those of spans received: where SDKs sample, a span counts for as many
calls as its threshold (ot=th: in tracestate) says, and for one without it.`,
		Flags:  set.Flags(),
		Action: set.Action(o.Check, o.Run),
	}
}

// otlpFlags are the flags of what is received. There is none for names: spans have theirs from the service that made them.
func otlpFlags(o *otlp.Options) flags.Set {
	return flags.Set{
		{Flag: &cli.GenericFlag{Name: "spans.http-listen-address", Value: flags.Value(&o.HTTP, otlp.DefaultHTTP, flags.ParseAddress), Usage: "`ADDRESS` for OTLP over HTTP, host:port; traces are received at /v1/traces"}},
		{Flag: &cli.GenericFlag{Name: "spans.grpc-listen-address", Value: flags.Value(&o.GRPC, otlp.DefaultGRPC, flags.ParseAddress), Usage: "`ADDRESS` for OTLP over gRPC, without TLS"}},
		{Flag: &cli.StringFlag{Name: "service", Destination: &o.Service, Usage: "`NAME` of the only service whose spans are counted, its service.name"}},
		{Of: "Tolerance", Zero: true, Flag: &cli.DurationFlag{Name: "tolerance", Value: otlp.DefaultTolerance, Destination: &o.Tolerance, Usage: "`DURATION` by which spans may come after their ends, in whole seconds"}},
		{Of: "Collector.MaxResources", Flag: &cli.IntFlag{Name: "max-resources", Value: collector.DefaultMaxResources, Destination: &o.MaxResources, Usage: "how many resources are counted apart; calls of all others are counted together, as _other"}},
		{Of: "MaxSpans", Zero: true, Flag: &cli.IntFlag{Name: "max-spans", Value: otlp.DefaultMaxSpans, Destination: &o.MaxSpans, Usage: "how many spans are remembered, so that one that comes twice is counted once; when there are more, requests are refused until the oldest are two minutes old"}},
		{Of: "App", Needs: []string{"metric-log.dir"}, Flag: &cli.StringFlag{Name: "metric-log.app", Category: "Metric log", Value: "otlp", Destination: &o.Telemetry.Exporter.App, Usage: "`NAME` of the application in the metric log"}},
	}
}
