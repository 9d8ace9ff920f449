package prom

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/leap"
)

// Defaults of [SecondsOptions].
const (
	DefaultMaxSamples = 500_000
	DefaultMaxBytes   = 64 << 20
	DefaultMaxCursors = 100

	DefaultCursorExpiry = 24 * time.Hour
)

// SecondsOptions configure [Seconds]. The zero value is sensible.
type SecondsOptions struct {
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// MaxSamples is the most samples in a response, [DefaultMaxSamples] if zero; a response has at least one second. A scraper
	// that was away for long catches up in several responses, each small enough to be ingested before its scrape times out.
	// With a scrape timeout below ten seconds the limit is proportionally lower. It must be below a sample_limit of the server,
	// which reads a response and then discards all of it.
	MaxSamples int
	// MaxBytes is about the largest response before compression, [DefaultMaxBytes] if zero; a sample has some 80 bytes. Unless
	// it is set, VictoriaMetrics gets at most 15 MiB, because it silently discards responses over 16 MiB. It must
	// be well below a body_size_limit of the server, too.
	MaxBytes int
	// MaxCursors is the most cursors at a time, [DefaultMaxCursors] if zero. A new one beyond that evicts the cursor that was asked
	// for often and at a steady pace for the shortest time. Of those that never were, it is one of the host that has the most, and
	// there the one that was unused for the longest. A host that has a quarter of all evicts one of its own. A scraper whose cursor
	// was evicted begins again with the whole history. A host is an address, of IPv6 a network of 64 bits.
	MaxCursors int
	// CursorExpiry is how long a cursor is kept that nobody asks for, [DefaultCursorExpiry] if zero, and at least an hour. Then its
	// metrics end, its lag among them, and it goes from the state file.
	CursorExpiry time.Duration
	// Log is the metric log of the process, such as a metriclog.Writer; none if nil. With it the positions of scrapers survive
	// a restart, in a state file of the log, and seconds of earlier processes are served from the log. A log serves one
	// endpoint.
	Log Log
	// Sampler adds series of client_golang; none if nil.
	Sampler *sampler.Sampler
	// Proxies are the networks of proxies between scrapers and the endpoint that show themselves by no header, see [Seconds]. A
	// response to a proxy counts as unconfirmed, because what the proxy has read the scraper need not have. A proxy that is not
	// known as one is taken for the scraper. What comes through a proxy is of one host, for what is bounded by hosts, so a flood
	// through it is felt behind it only; but a proxy of these networks that adds X-Forwarded-For is believed whom it asks for.
	Proxies []netip.Prefix
	// Logger receives a message when the positions of scrapers cannot be read; slog.Default if nil.
	Logger *slog.Logger
}

func (o *SecondsOptions) defaults() {
	o.Namespace, o.Logger = cmp.Or(o.Namespace, table.Namespace), cmp.Or(o.Logger, slog.Default())
	o.MaxSamples, o.MaxBytes = cmp.Or(o.MaxSamples, DefaultMaxSamples), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxCursors, o.CursorExpiry = cmp.Or(o.MaxCursors, DefaultMaxCursors), cmp.Or(o.CursorExpiry, DefaultCursorExpiry)
}

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
func (o SecondsOptions) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "prom", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		wrong("Namespace", "%w", err)
	}
	for _, limit := range []struct {
		field string
		n     int
	}{{"MaxSamples", o.MaxSamples}, {"MaxBytes", o.MaxBytes}, {"MaxCursors", o.MaxCursors}} {
		if limit.n < 1 {
			wrong(limit.field, "%d; at least 1 is needed", limit.n)
		}
	}
	if o.CursorExpiry < leap.MaxSpan {
		wrong("CursorExpiry", "%v is less than %v, the longest history", o.CursorExpiry, leap.MaxSpan)
	}
	for _, p := range o.Proxies {
		if !p.IsValid() {
			wrong("Proxies", "%v is no network", p)
		}
	}
	return errors.Join(errs...)
}

// Log is what [Seconds] needs of a metric log; metriclog.Writer implements it.
type Log interface {
	seconds.Log
	// StateFile returns the path for a file of this name that belongs to the log. It returns each name once: two users would
	// overwrite each other's state.
	StateFile(name string) (path string, err error)
}
