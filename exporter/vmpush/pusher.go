package vmpush

import (
	"context"
	"fmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/push"
)

// Pusher sends the sealed seconds of a Collector to VictoriaMetrics. It must be made with [New]. It is safe for concurrent use,
// but Run or Start must be called once. Recording never waits for it. While the server is away, seconds wait in the Collector's
// history, and in the metric log if there is one; others are dropped and counted. It publishes metrics about itself until Run
// has returned.
type Pusher struct{ p *push.Pusher }

// New makes a Pusher for all seconds from the present one on. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Pusher, error) {
	p, err := push.New(c, o.push(), format())
	if err != nil {
		return nil, fmt.Errorf("vmpush: %w", err)
	}
	return &Pusher{p}, nil
}

// SetInstance replaces the label instance, for a service that learns its port after New. It must be called before Run.
func (p *Pusher) SetInstance(instance string) { p.p.SetInstance(instance) }

// Run sends each second when it is sealed, until ctx ends. Then it waits for the open second, at most about a second, and sends
// what is left until Options.Drain has passed. The error says what could not be sent then, and is not in Options.Log either.
func (p *Pusher) Run(ctx context.Context) error {
	if err := p.p.Run(ctx); err != nil {
		return fmt.Errorf("vmpush: %w", err)
	}
	return nil
}

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (p *Pusher) Start() (stop func() error) { return background.Start(p.Run) }

// Close removes the metrics of a Pusher that never ran.
func (p *Pusher) Close() { p.p.Close() }
