package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Filled is what [Fill] did, in samples.
type Filled struct {
	// Written is what the server took, and Refused what it will never take.
	Written, Refused int64
	// Left is what was not sent, or of which nobody knows whether it arrived.
	Left int64
}

// patience is how long Fill tries to send a request. Somebody is waiting for it.
const patience = 2 * time.Minute

// Check finds everything that is wrong with options for [Fill].
func Check(o Options) error {
	o.defaults()
	return o.check(nil)
}

// Fill sends what seconds hands to the Sink, a request when there is enough for one. Series may come several times. When
// the server cannot be reached for two minutes, or will not take anything, or ctx ends, the rest is counted and not sent.
// The error is why, or that of seconds.
func Fill(ctx context.Context, o Options, f Format, seconds func(exporter.Sink) error) (Filled, error) {
	x, err := newFilling(ctx, o, f)
	if err != nil {
		return Filled{}, err
	}
	return x.fill(seconds)
}

// filling is a Sink that sends.
type filling struct {
	*sender
	request
	ctx    context.Context
	filled Filled
	failed error // why nothing is sent any more
}

func newFilling(ctx context.Context, o Options, f Format) (*filling, error) {
	if err := Check(o); err != nil {
		return nil, err
	}
	o.defaults()
	out, err := newSender(o, f, mostWait)
	if err != nil {
		return nil, err
	}
	out.once = true
	return &filling{sender: out, ctx: ctx, request: request{enc: f.New()}}, nil
}

func (x *filling) fill(seconds func(exporter.Sink) error) (Filled, error) {
	defer x.client.CloseIdleConnections()
	err := seconds(NewLabelled(x, x.opts.Labels))
	x.flush()
	x.filled.Written, x.filled.Refused = x.stat.samples, x.stat.refused
	return x.filled, errors.Join(x.failed, err)
}

// Series implements exporter.Sink.
func (x *filling) Series(f *exporter.Family, names, values []string) {
	if x.enc.Samples() >= x.opts.MaxSamples {
		x.flush()
	}
	x.enc.Series(f, names, values)
}

// Value implements exporter.Sink.
func (x *filling) Value(unix int64, v float64) { x.enc.Value(unix, v) }

// Histogram implements exporter.Sink.
func (x *filling) Histogram(unix int64, h *node.Histogram) { x.enc.Histogram(unix, h) }

// flush sends the request.
func (x *filling) flush() {
	defer x.begin()
	if !x.finish() {
		return
	}
	if x.failed == nil && x.ctx.Err() != nil {
		x.failed = x.ctx.Err()
	}
	if x.failed != nil {
		x.filled.Left += int64(x.samples)
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	if x.deliver(ctx, &x.request) {
		return
	}
	x.filled.Left += int64(x.samples)
	x.failed = fmt.Errorf("%s: %w", x.opts.URL, errors.Join(x.ctx.Err(), x.said))
	if x.doubted {
		x.failed = fmt.Errorf("%w (whether the last %d samples arrived is not known)", x.failed, x.samples)
	}
}
