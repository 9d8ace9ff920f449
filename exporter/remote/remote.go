package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/push"
)

// What [Options] are if they do not say.
const (
	DefaultInterval   = push.DefaultInterval
	DefaultTimeout    = push.DefaultTimeout
	DefaultMaxSamples = push.DefaultMaxSamples
	DefaultDrain      = push.DefaultDrain
)

// Options configure a [Writer]. URL and Labels are needed.
type Options = push.Options

// Writer sends the sealed seconds of a Collector. It must be made with [New]. It is safe for concurrent use, but Run runs
// once. Nothing is sent, and nothing costs anything, until it does; recording never waits for it.
type Writer struct{ p *push.Pusher }

// format is remote write 1.0.
var format = push.Format{
	Name: "remote_write",
	Header: http.Header{
		"Content-Type":                      {"application/x-protobuf"},
		"Content-Encoding":                  {"snappy"},
		"X-Prometheus-Remote-Write-Version": {"0.1.0"},
	},
	New: func() push.Encoder { return new(encoder) },
}

// New makes a Writer for all seconds from the present one on. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Writer, error) {
	if o.Selection.Histogram {
		return nil, errors.New("remote: the histogram of single seconds is not sent by remote write")
	}
	p, err := push.New(c, o, format)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	return &Writer{p}, nil
}

// Run sends each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about a
// second, and sends everything that is left, as long as Options.Drain allows. The error says what could not be sent
// then.
func (w *Writer) Run(ctx context.Context) error {
	if err := w.p.Run(ctx); err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	return nil
}

// Self implements [exporter.Source].
func (w *Writer) Self(yield func(name string, value float64, labels ...string)) { w.p.Self(yield) }
