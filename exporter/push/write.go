package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/internal/redact"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// WriteResult counts the samples of a write.
type WriteResult struct {
	// Written samples were accepted by the server, Refused ones never will be.
	Written, Refused int64
	// Unconfirmed samples may have arrived: after an attempt without a clear result the server rejected them as duplicates or
	// out of order, or did not respond any more.
	Unconfirmed int64
	// Left samples were not sent, or did not arrive.
	Left int64
}

// maxWriteTime limits the attempts to send one request.
const maxWriteTime = 2 * time.Minute

// Write sends what emit gives to the Sink, in requests of MaxSamples. Series may be repeated. If a request cannot be sent for
// two minutes, or the server rejects the URL or the credentials, or ctx ends, the remaining samples are counted and not sent.
// The error is the reason, or that of emit.
func Write(ctx context.Context, o Options, emit func(seconds.Sink) error) (WriteResult, error) {
	if err := o.Check(); err != nil {
		return WriteResult{}, err
	}
	o.defaults()
	x := &batchWriter{sender: newSender(o, maxWait), ctx: ctx, request: request{enc: o.Format.encoder()}}
	x.failFast = true
	return x.write(emit)
}

// batchWriter is a Sink that sends what it gets.
type batchWriter struct {
	*sender
	request
	ctx    context.Context
	result WriteResult
	failed error // reason why sending stopped
}

func (x *batchWriter) write(emit func(seconds.Sink) error) (WriteResult, error) {
	defer x.client.CloseIdleConnections()
	err := emit(NewLabelled(x, x.opts.Labels))
	x.flush()
	x.result.Written, x.result.Refused, x.result.Unconfirmed = x.total.samples, x.total.refused, x.total.unconfirmed
	return x.result, errors.Join(x.failed, err)
}

// Series implements seconds.Sink.
func (x *batchWriter) Series(f *table.Family, names, values []string) {
	if x.enc.Samples() >= x.opts.MaxSamples {
		x.flush()
	}
	x.enc.Series(f, names, values)
}

// Value implements seconds.Sink.
func (x *batchWriter) Value(unix int64, v float64) { x.enc.Value(unix, v) }

// Histogram implements seconds.Sink.
func (x *batchWriter) Histogram(unix int64, h *node.Histogram) { x.enc.Histogram(unix, h) }

// flush sends the present request.
func (x *batchWriter) flush() {
	defer func() {
		if x.kept {
			x.enc = x.opts.Format.encoder()
		}
		x.begin()
	}()
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
	switch x.deliver(ctx, &x.request) {
	case accepted, refused, unconfirmed:
		return
	}
	x.failed = fmt.Errorf("%s: %w", redact.URL(x.opts.URL), errors.Join(x.ctx.Err(), redact.Error(x.lastErr)))
	if !x.doubt {
		x.result.Left += int64(x.samples)
		return
	}
	x.total.unconfirmed += int64(x.samples)
	x.failed = fmt.Errorf("%w (whether the last %d samples arrived is unknown)", x.failed, x.samples)
}
