package remote

import (
	"context"
	"fmt"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/internal/push"
)

// Filled is what [Fill] did.
type Filled = push.Filled

// Check finds everything that is wrong with options for [Fill].
func Check(o Options) error { return push.Check(o) }

// Fill sends seconds that are not a Collector's present ones, such as those of a metric log: what the function seconds
// hands to the sink, a request when there is enough for one. Series may come several times, with later samples. It uses
// the URL, Labels, Client, Timeout, MaxSamples and Logger of the options.
//
// A request that fails is tried again for two minutes. Then, or when the server does not want anything from us, or when
// ctx ends, the rest is counted and not sent; the error says why. The error is also that of seconds, and not about
// samples that were refused.
func Fill(ctx context.Context, o Options, seconds func(exporter.Sink) error) (Filled, error) {
	filled, err := push.Fill(ctx, o, format, seconds)
	if err != nil {
		return filled, fmt.Errorf("remote: %w", err)
	}
	return filled, nil
}
