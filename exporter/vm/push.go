package vm

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// PushOptions configure a [Pusher]. URL and Labels are needed.
type PushOptions = push.Options

// Pusher sends the sealed seconds of a Collector to VictoriaMetrics. It must be made with [NewPusher]. It is safe for
// concurrent use, but Run runs once. Nothing is sent, and nothing costs anything, until it does; recording never waits
// for it. While a server is away seconds wait in the Collector's history; older ones are dropped, and counted.
type Pusher struct{ p *push.Pusher }

// NewPusher makes a Pusher for all seconds from the present one on. With Selection.Histogram the histogram of response
// times is sent, too, by vmrange. The error names every option that is wrong.
func NewPusher(c *collector.Collector, o PushOptions) (*Pusher, error) {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a good one
	p, err := push.New(c, o, push.Format{
		Name:   "vm",
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}},
		New:    func() push.Encoder { return newEncoder(z) },
	})
	if err != nil {
		return nil, fmt.Errorf("vm: %w", err)
	}
	return &Pusher{p}, nil
}

// Run sends each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about a
// second, and sends everything that is left, as long as PushOptions.Drain allows. The error says what could not be sent
// then.
func (p *Pusher) Run(ctx context.Context) error {
	if err := p.p.Run(ctx); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	return nil
}

// Self implements [exporter.Source].
func (p *Pusher) Self(yield func(name string, value float64, labels ...string)) { p.p.Self(yield) }

// encoder writes a request as text, zipped.
type encoder struct {
	*text.Page
	pages text.Pages
	zip   *gzip.Writer // of all requests, which are finished one after the other
	out   bytes.Buffer
}

func newEncoder(z *gzip.Writer) *encoder {
	e := &encoder{zip: z}
	e.Page = e.pages.Get(text.VictoriaMetrics)
	return e
}

// Reset implements push.Encoder.
func (e *encoder) Reset() {
	e.pages.Put(e.Page)
	e.Page = e.pages.Get(text.VictoriaMetrics)
}

// Body implements push.Encoder.
func (e *encoder) Body() ([]byte, error) {
	e.out.Reset()
	e.zip.Reset(&e.out)
	if _, err := e.WriteTo(e.zip); err != nil {
		return nil, err
	}
	if err := e.zip.Close(); err != nil {
		return nil, err
	}
	return e.out.Bytes(), nil
}
