package backfill

import (
	"context"
	"fmt"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/remotewrite"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/remote"
)

// WriteResult counts the samples of a write.
type WriteResult = push.WriteResult

// request returns the options that are used: URL, Labels, Client, Timeout, MaxSamples and Logger.
func request(o remote.Options) push.Options {
	return push.Options{URL: o.URL, Labels: o.Labels, Client: o.Client, Timeout: o.Timeout, MaxSamples: o.MaxSamples, Logger: o.Logger}
}

// CheckRemoteWrite returns everything that is wrong with options for [Gap.RemoteWrite].
func CheckRemoteWrite(o remote.Options) error {
	if err := push.Check(request(o)); err != nil {
		return fmt.Errorf("backfill: %w", err)
	}
	return nil
}

// RemoteWrite sends the samples to a server that accepts samples out of order: Prometheus with
// storage.tsdb.out_of_order_time_window, or VictoriaMetrics, which stores duplicates. Of the options it uses URL, Labels,
// Client, Timeout, MaxSamples and Logger.
//
// A failed request is retried for two minutes. After that, or when the server rejects the URL or the credentials, or ctx ends,
// the remaining samples are counted and not sent; the error is the reason. Samples that the server refuses, or that may have
// arrived in an attempt whose result is unknown, are counted, and are no error.
func (g *Gap) RemoteWrite(ctx context.Context, o remote.Options) (Scan, WriteResult, error) {
	const batch = 20_000 // bounds how many samples are refused with one that is too old
	scan, err := g.scan(ctx)
	if err != nil || scan.First.IsZero() {
		return scan, WriteResult{}, err
	}
	result, err := Write(ctx, o, func(sink seconds.Sink) error { return g.emit(ctx, "", scan.Last, batch, sink) })
	return scan, result, err
}

// Write sends the samples that emit gives to a Sink, as [Gap.RemoteWrite] does. Series may be repeated.
func Write(ctx context.Context, o remote.Options, emit func(seconds.Sink) error) (WriteResult, error) {
	result, err := push.Write(ctx, request(o), remotewrite.Format, emit)
	if err != nil {
		err = fmt.Errorf("backfill: %w", err)
	}
	return result, err
}
