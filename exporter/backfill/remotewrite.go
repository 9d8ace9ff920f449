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

// request are the options that matter here: URL, Labels, Client, Timeout, MaxSamples and Logger.
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

// RemoteWrite sends the samples to a server that takes samples out of order: a Prometheus with
// storage.tsdb.out_of_order_time_window, or a VictoriaMetrics, which stores twice what it has already. Of the options the
// URL, Labels, Client, Timeout, MaxSamples and Logger are used.
//
// A request that fails is tried again for two minutes. Then, or when the server takes nothing at all, or when ctx ends, the
// rest is counted and not sent; the error is the reason. Samples that were refused are counted, and are no error.
func (g *Gap) RemoteWrite(ctx context.Context, o remote.Options) (Scan, WriteResult, error) {
	const together = 20_000 // what is too old for the server must not take too much with it
	found, err := g.scan(ctx)
	if err != nil || found.First.IsZero() {
		return found, WriteResult{}, err
	}
	result, err := push.Write(ctx, request(o), remotewrite.Format, func(sink seconds.Sink) error { return g.emit(ctx, "", found.Last, together, sink) })
	if err != nil {
		err = fmt.Errorf("backfill: %w", err)
	}
	return found, result, err
}
