package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/internal/redact"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
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
	w := &writing{sender: newSender(o, maxWait), ctx: ctx}
	defer w.client.CloseIdleConnections()
	w.failFast = true
	x := &splitter{sender: w.sender, labels: newLabels(o.Labels)}
	x.full = func() {
		for _, r := range x.finish() {
			w.send(r)
		}
		x.all = nil
	}
	x.begin(false)
	err := emit(x)
	x.full()
	w.result.Written, w.result.Refused, w.result.Unconfirmed = w.total.samples, w.total.refused, w.total.unconfirmed
	return w.result, errors.Join(w.failed, err)
}

// writing is a call of Write.
type writing struct {
	*sender
	ctx    context.Context
	result WriteResult
	failed error // reason why sending stopped
}

// send sends a request, or counts it if sending has stopped.
func (w *writing) send(r *request) {
	defer w.reuse(r)
	if w.failed == nil && w.ctx.Err() != nil {
		w.failed = w.ctx.Err()
	}
	if w.failed != nil {
		w.result.Left += int64(r.samples)
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, maxWriteTime)
	defer cancel()
	switch w.deliver(ctx, r) {
	case accepted, refused, unconfirmed:
		return
	}
	w.failed = fmt.Errorf("%s: %w", redact.URL(w.opts.URL), errors.Join(w.ctx.Err(), redact.Error(r.lastErr)))
	if !r.doubt {
		w.result.Left += int64(r.samples)
		return
	}
	w.total.unconfirmed += int64(r.samples)
	w.failed = fmt.Errorf("%w (whether the last %d samples arrived is unknown)", w.failed, r.samples)
}
