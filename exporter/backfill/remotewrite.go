package backfill

import (
	"context"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/remote"
)

// RemoteWrite sends the samples to a server that takes samples out of order: a Prometheus with
// storage.tsdb.out_of_order_time_window, or a VictoriaMetrics, which stores twice what it has already. See [remote.Fill].
func (h *Hole) RemoteWrite(ctx context.Context, o remote.Options) (Found, remote.Filled, error) {
	const together = 20_000 // what is too old for the server must not take too much with it
	o.Namespace = h.Namespace
	found, err := h.look(ctx)
	if err != nil || found.First.IsZero() {
		return found, remote.Filled{}, err
	}
	filled, err := remote.Fill(ctx, o, func(sink exporter.Sink) error { return h.walk(ctx, "", found.Last, together, sink) })
	return found, filled, err
}
