package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// WriteResult counts the samples of a [Write].
type WriteResult struct {
	// Written samples were taken by the server, Refused ones it will never take.
	Written, Refused int64
	// Left samples were not sent, or it is unknown whether they arrived.
	Left int64
}

// maxWriteTime is how long Write tries to send one request. Somebody is waiting for it.
const maxWriteTime = 2 * time.Minute

// Check returns everything that is wrong with options for [Write].
func Check(o Options) error {
	o.defaults()
	return o.check(nil)
}

// Write sends what emit gives to the Sink, a request when there is enough for one. Series may come several times. When the
// server cannot be reached for two minutes, or takes nothing at all, or ctx ends, the rest is counted and not sent. The
// error is the reason, or that of emit.
func Write(ctx context.Context, o Options, f Format, emit func(seconds.Sink) error) (WriteResult, error) {
	x, err := newWriting(ctx, o, f)
	if err != nil {
		return WriteResult{}, err
	}
	return x.write(emit)
}

// writing is a Sink that sends.
type writing struct {
	*sender
	request
	ctx    context.Context
	result WriteResult
	failed error // why nothing is sent any more
}

func newWriting(ctx context.Context, o Options, f Format) (*writing, error) {
	if err := Check(o); err != nil {
		return nil, err
	}
	o.defaults()
	out, err := newSender(o, f, maxWait)
	if err != nil {
		return nil, err
	}
	out.once = true
	return &writing{sender: out, ctx: ctx, request: request{enc: f.New()}}, nil
}

func (x *writing) write(emit func(seconds.Sink) error) (WriteResult, error) {
	defer x.client.CloseIdleConnections()
	err := emit(NewLabelled(x, x.opts.Labels))
	x.flush()
	x.result.Written, x.result.Refused = x.total.samples, x.total.refused
	return x.result, errors.Join(x.failed, err)
}

// Series implements seconds.Sink.
func (x *writing) Series(f *table.Family, names, values []string) {
	if x.enc.Samples() >= x.opts.MaxSamples {
		x.flush()
	}
	x.enc.Series(f, names, values)
}

// Value implements seconds.Sink.
func (x *writing) Value(unix int64, v float64) { x.enc.Value(unix, v) }

// Histogram implements seconds.Sink.
func (x *writing) Histogram(unix int64, h *node.Histogram) { x.enc.Histogram(unix, h) }

// flush sends the request.
func (x *writing) flush() {
	defer x.begin()
	if !x.finish() {
		return
	}
	if x.failed == nil && x.ctx.Err() != nil {
		x.failed = x.ctx.Err()
	}
	if x.failed != nil {
		x.result.Left += int64(x.samples)
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, maxWriteTime)
	defer cancel()
	if x.deliver(ctx, &x.request) {
		return
	}
	x.result.Left += int64(x.samples)
	x.failed = fmt.Errorf("%s: %w", x.opts.URL, errors.Join(x.ctx.Err(), x.lastErr))
	if x.doubted {
		x.failed = fmt.Errorf("%w (whether the last %d samples arrived is not known)", x.failed, x.samples)
	}
}
