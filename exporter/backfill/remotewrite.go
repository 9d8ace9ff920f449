package backfill

import (
	"context"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/push"
)

// WriteResult counts the samples of a write.
type WriteResult = push.WriteResult

// RemoteWrite sends the samples to a server that accepts samples out of order: Prometheus with
// storage.tsdb.out_of_order_time_window, or VictoriaMetrics, which stores duplicates. Of the options it uses URL, Labels,
// Client, Timeout, MaxSamples and Logger.
//
// A failed request is retried for two minutes. After that, or when the server rejects the URL or the credentials, or ctx ends,
// the remaining samples are counted and not sent; the error is the reason. Samples that the server refuses, or that may have
// arrived in an attempt whose result is unknown, are counted, and are no error.
func (g *Gap) RemoteWrite(ctx context.Context, o push.Options) (Scan, WriteResult, error) {
	const batch = 20_000 // bounds how many samples are refused with one that is too old
	scan, err := g.scan(ctx)
	if err != nil || scan.First.IsZero() {
		return scan, WriteResult{}, err
	}
	result, err := push.Write(ctx, o, func(sink seconds.Sink) error { return g.emit(ctx, "", scan.Last, batch, sink) })
	return scan, result, err
}
