// Package otlp receives spans by OpenTelemetry's protocol and counts them as calls, in the seconds in which they were.
//
// The way of a span: a request comes by HTTP or gRPC (handler), its body is read within bounds (body) and decoded as protobuf or JSON,
// of which only the fields that count are read (protobuf, json; batch has their table). A [receiver] passes over spans that it has seen (seen), names
// the others (names), weighs those that are sampled (span), and puts them into a timeline. A second is played, and so counted by a
// Collector, when the tolerance and a second are over after it. [Options.Run] is the command: it serves what is counted.
//
// Of the protocol that much is written here which the receiver needs: whole messages by OpenTelemetry's own packages take several times as long to
// decode, and bring gRPC's library with them. Fields, statuses and what senders repeat are those of OTLP 1.11; attributes are those of the
// semantic conventions 1.43, and of those before they were stable.
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

// Options are those of the command. The zero value is of no use: its flags have the defaults.
type Options struct {
	Telemetry telemetry.Options

	HTTP, GRPC   string        // addresses; both serve both
	Service      string        // service.name of the spans that are counted; empty for all
	Tolerance    time.Duration // how late spans may be, in whole seconds
	MaxResources int           // how many resources are counted apart
	MaxSpans     int           // how many spans are remembered, so that one that comes twice is counted once
}

// Defaults of [Options].
const (
	DefaultHTTP      = "127.0.0.1:4318"
	DefaultGRPC      = "127.0.0.1:4317"
	DefaultTolerance = 30 * time.Second // SDKs send every five seconds, and repeat for a minute
	DefaultMaxSpans  = 4 << 20          // of 30,000 a second, for two minutes

	// maxPathValues is how many values of a path segment have names of their own, where names are paths: some SDKs tell routes by the
	// names of spans only, so there are as many as services have routes.
	maxPathValues = 200

	// Resources are kept for ten minutes after their last span, and so are longer in use than spans are held.
	maxTolerance = 4 * time.Minute
)

// Check returns what is wrong with the options, and fills in what follows from others.
func (o *Options) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "otlp", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if o.Tolerance < time.Second || o.Tolerance > maxTolerance || o.Tolerance%time.Second != 0 {
		wrong("Tolerance", "%v is not whole seconds from 1s to %v", o.Tolerance, maxTolerance)
	}
	if o.MaxSpans < maxSpans {
		wrong("MaxSpans", "%d is less than %d, which one request may have", o.MaxSpans, maxSpans)
	}
	o.Telemetry.Exporter.Collector.MaxResources = o.MaxResources
	return errors.Join(append(errs, o.Telemetry.Check())...)
}

// tick is how often seconds that are over are played when no spans come.
const tick = 200 * time.Millisecond

// Run receives spans until ctx ends, or one of its servers ends. The end is in an order: nothing is received any more, all that is held is
// counted, and the ways out write and send it. The options must be checked. Errors name the flag that they are about.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	earned, err := httpstat.NewNames(httpstat.NamesOptions{MaxNames: o.MaxResources, MaxValues: maxPathValues})
	if err != nil {
		return err
	}
	after, err := o.Telemetry.LastLogged(stderr) // spans of what the log has, or of what is before it, are late
	if err != nil {
		return err
	}
	r := newReceiver(o, earned, after, time.Now())
	x := &o.Telemetry.Exporter
	x.Collector = collector.Options{Now: r.clock.Now, Given: []string{httpstat.Unmatched}, MaxResources: o.MaxResources}
	x.Drain = -1 // when no spans come any more, nothing completes
	t, err := telemetry.Start(&o.Telemetry, stderr)
	if err != nil {
		return err
	}
	t.Collector.Publish(r.metrics()...)
	t.KeepNames(earned)
	r.serve(t.Collector, t.Logger)
	h, bounds := newHandler(r), server.Pages()
	bounds.HTTP2 = true
	var servers []*server.Server
	stop := func() (err error) {
		for _, s := range servers {
			err = errors.Join(err, s.Stop())
		}
		return errors.Join(err, r.finish(), t.Stop())
	}
	for _, x := range [...]struct{ flag, address string }{{"--spans.http-listen-address", o.HTTP}, {"--spans.grpc-listen-address", o.GRPC}} {
		s, err := server.Listen(x.address, h, t.Logger, bounds)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", x.flag, err), stop())
		}
		servers = append(servers, s)
	}
	fmt.Fprintf(stdout, "otlp        http://%s and gRPC on %s, %v behind; counts are of the spans received\n%s", servers[0].Address(), servers[1].Address(), o.Tolerance+delay, t.Banner)
	ctx = t.Ready(ctx, servers...)
	err = r.play(ctx)
	return errors.Join(err, stop())
}

// play plays seconds when they are over, until ctx ends.
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
