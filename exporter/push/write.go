package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/internal/redact"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// WriteResult counts the samples of a write.
type WriteResult struct {
	// Written samples were accepted by the server. The server will never accept Refused samples.
	Written, Refused int64
	// Unconfirmed samples may have arrived. After an attempt with an unclear result, the server rejected them as
	// duplicates or out of order, or it no longer responded.
	Unconfirmed int64
	// Left samples were not sent, or did not arrive.
	Left int64
}

// maxWriteTime limits the attempts to send one request.
const maxWriteTime = 2 * time.Minute

// Write sends the samples that emit passes to the Sink, in requests of MaxSamples. After each request it pauses for as
// long as the request took, so the server has at least half of its time for other clients. emit may repeat a series.
//
// Write stops if a request cannot be sent for two minutes, if the server rejects the URL or the credentials, or if ctx
// ends. The remaining samples are then counted and not sent. The error contains the reason and the error of emit.
func Write(ctx context.Context, o Options, emit func(seconds.Sink) error) (result WriteResult, err error) {
	if err := o.Check(); err != nil {
		return result, err
	}
	o.defaults()
	s := newSender(o, maxWait)
	defer s.client.CloseIdleConnections()
	s.failFast = true
	var failed error // the error that stopped sending
	var all int64    // number of samples
	x := &splitter{sender: s, Labelled: NewLabelled(nil, o.Labels), done: func(r *request) {
		if all += int64(r.samples); failed == nil {
			began := time.Now()
			failed = s.write(ctx, r)
			background.Sleep(ctx, min(time.Since(began), time.Second))
		}
	}}
	err = emit(x)
	x.finish()
	result = WriteResult{Written: s.total.samples, Refused: s.total.refused, Unconfirmed: s.total.unconfirmed}
	result.Left = all - result.Written - result.Refused - result.Unconfirmed
	return result, errors.Join(failed, err)
}

// write sends a request of [Write]. If it returns an error, the request was not settled, and Write sends no further
// requests.
func (p *sender) write(ctx context.Context, r *request) error {
	sending, cancel := context.WithTimeout(ctx, maxWriteTime)
	defer cancel()
	if sending.Err() == nil && p.deliver(sending, r) {
		return nil
	}
	err := fmt.Errorf("%s: %w", redact.URL(p.opts.URL), errors.Join(ctx.Err(), r.lastErr))
	if r.doubt {
		p.total.unconfirmed += int64(r.samples)
		err = fmt.Errorf("%w (unknown whether the last %d samples arrived)", err, r.samples)
	}
	return err
}
