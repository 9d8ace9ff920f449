// Package otlp receives spans by OpenTelemetry's protocol and counts them as calls, in the seconds of their starts and
// ends.
//
// The path of a span:
//
//	handler, failure            a request arrives over HTTP or gRPC
//	body                        its bytes are read, within bounds that all hosts share
//	decoder                     one of a few decoders decompresses it
//	protobuf, json, fields      and decodes the fields that windowstat uses
//	batch, span, attributes     into spans
//	receiver, seen              duplicates, late spans and spans from the future are counted as such
//	names, naming, targets      all others get the name of a resource
//	weight                      and a number of calls, if a sampler dropped some
//	timeline                    A second is replayed, and so counted by a Collector, a second after the tolerance.
//
// [Options.Run] is the command, which also exports the counts.
//
// The package implements the part of the protocol that the receiver needs. OpenTelemetry's packages take several times
// as long to decode a message, and depend on the gRPC library. It follows OTLP 1.11 for fields, statuses and
// repetitions, and the semantic conventions 1.43 and earlier ones for attributes.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Options configures the command. The zero value is invalid: the flags of the command set the defaults.
type Options struct {
	Telemetry telemetry.Options

	// HTTP and GRPC are listen addresses. Each serves both protocols.
	HTTP, GRPC string
	// Service is the service.name of the counted spans, or empty for all services.
	Service string
	// Tolerance is the maximum delay of a span after its end, in whole seconds.
	Tolerance time.Duration
	// MaxResources is the maximum number of resources.
	MaxResources int
	// MaxSpans is the maximum number of spans that are remembered to detect duplicates.
	MaxSpans int
}

// Defaults of [Options].
const (
	DefaultHTTP = "127.0.0.1:4318"
	DefaultGRPC = "127.0.0.1:4317"
	// SDKs send every five seconds, and repeat for a minute.
	DefaultTolerance = 30 * time.Second
	// The default suffices for 30,000 spans a second for two minutes.
	DefaultMaxSpans = 4 << 20

	// maxPathValues is the maximum number of values of a path segment with their own names, where names contain paths.
	// Some SDKs report routes only in the names of spans, so it is the number of routes of a large service.
	maxPathValues = 200

	// A resource is kept for ten minutes after its last span. maxTolerance is well below that time, so a held span
	// never loses its resource.
	maxTolerance = 4 * time.Minute
)

// Check reports the invalid options, and sets the options that follow from others.
func (o *Options) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		err := fmt.Errorf(format, args...)
		errs = append(errs, &collector.OptionError{Package: "otlp", Field: field, Err: err})
	}
	if o.Tolerance < time.Second || o.Tolerance > maxTolerance || o.Tolerance%time.Second != 0 {
		wrong("Tolerance", "%v is not whole seconds from 1s to %v", o.Tolerance, maxTolerance)
	}
	if o.MaxSpans < maxSpans {
		wrong("MaxSpans", "%d is less than %d, the maximum of one request", o.MaxSpans, maxSpans)
	}
	o.Telemetry.Exporter.Collector.MaxResources = o.MaxResources
	return errors.Join(append(errs, o.Telemetry.Check())...)
}

// tick is the interval at which ended seconds are replayed while no spans arrive.
const tick = 200 * time.Millisecond

// Run receives spans until ctx ends or one of its servers ends. It stops in a fixed order: it closes the listeners,
// replays the held calls, and then the exporters write and send them. The options must be checked. An error names the
// flag that caused it.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	earned, err := httpstat.NewNames(httpstat.NamesOptions{MaxNames: o.MaxResources, MaxValues: maxPathValues})
	if err != nil {
		return err
	}
	after, err := o.Telemetry.LastLogged(stderr) // spans of logged seconds, and of earlier ones, are late
	if err != nil {
		return err
	}
	r := newReceiver(o, earned, after, time.Now())
	x := &o.Telemetry.Exporter
	x.Collector = collector.Options{
		Now: r.clock.Now, Given: []string{httpstat.Unmatched}, MaxResources: o.MaxResources,
		OpenTelemetry: x.Collector.OpenTelemetry,
	}
	x.Drain = -1 // after the last span, no call completes
	t, err := telemetry.Start(&o.Telemetry, stderr)
	if err != nil {
		return err
	}
	h := newHandler(r, t.Logger)
	t.Collector.Publish(append(r.metrics(), h.refusals.metric())...)
	t.KeepNames(earned)
	r.serve(t.Collector, t.Logger)
	var servers []*server.Server
	stop := func() (err error) {
		for _, s := range servers {
			err = errors.Join(err, s.Stop())
		}
		return errors.Join(err, r.finish(), t.Stop())
	}
	for _, x := range [...]struct{ flag, address string }{
		{"--spans.http-listen-address", o.HTTP},
		{"--spans.grpc-listen-address", o.GRPC},
	} {
		s, err := server.Listen(x.address, h, t.Logger, listenBounds())
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", x.flag, err), stop())
		}
		servers = append(servers, s)
	}
	fmt.Fprintf(stdout, "otlp        http://%s and gRPC on %s, %v behind; counts are of the spans received\n%s",
		servers[0].Address(), servers[1].Address(), o.Tolerance+delay, t.Banner)
	ctx = t.Ready(ctx, servers...)
	err = r.play(ctx)
	return errors.Join(err, stop())
}

// maxConns is the maximum number of connections of a listener: SDKs keep theirs open between batches.
const maxConns = 1024

// listenBounds returns the bounds of the listeners: the same as for the pages, but more connections, and HTTP/2 without
// TLS for gRPC.
func listenBounds() server.Bounds {
	b := server.Pages()
	b.Conns = max(1, min(maxConns, server.OpenFiles()/8))
	b.HTTP2 = true
	return b
}

// play replays ended seconds until ctx ends.
func (r *receiver) play(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := r.advance(now); err != nil {
				return err
			}
		}
	}
}
