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

// SecondsOptions configure [Seconds]. The zero value is a sensible default.
type SecondsOptions struct {
	// Namespace is the prefix of all metric names. The default is windowstat.
	Namespace string
	// MaxSamples is the maximum number of samples in a response, [DefaultMaxSamples] if zero. A response has at least
	// one second, even if the second has more samples. A scraper that was away for long catches up in several
	// responses, each small enough to be ingested before its scrape times out. With a scrape timeout below ten seconds
	// the maximum is proportionally lower. If the server has a sample_limit, MaxSamples must be below it: the server
	// reads a larger response and then discards all of it.
	MaxSamples int
	// MaxBytes is the approximate maximum size of a response before compression, [DefaultMaxBytes] if zero; a sample
	// has about 80 bytes. Unless it is set, VictoriaMetrics gets at most 15 MiB, because it silently discards responses
	// over 16 MiB. MaxBytes must be well below a body_size_limit of the server.
	MaxBytes int
	// MaxCursors is the maximum number of cursors, [DefaultMaxCursors] if zero. Beyond it, a new cursor evicts the one
	// with the shortest history of frequent, steady requests. Among cursors without such a history, the host with the
	// most loses its longest-unused one. A host with a quarter of all cursors evicts its own. A scraper whose cursor
	// was evicted gets the whole history again. A host is an IPv4 address or an IPv6 /64.
	MaxCursors int
	// CursorExpiry is the time without requests after which a cursor is removed, [DefaultCursorExpiry] if zero, and at
	// least an hour. The metrics of the cursor, including the lag, then end, and the cursor is removed from the state
	// file.
	CursorExpiry time.Duration
	// Log is the metric log of the process, such as a metriclog.Writer, or nil. With a log, the positions of scrapers
	// survive a restart, in a state file of the log, and seconds of earlier processes are served from the log. A log
	// serves one endpoint.
	Log Log
	// Sampler adds series of client_golang. Nil means none.
	Sampler *sampler.Sampler
	// Proxies are the networks of proxies between scrapers and the endpoint that do not identify themselves by a
	// header; see [Seconds]. A response to a proxy counts as unconfirmed, because the scraper may not have read the
	// bytes that the proxy has. An unknown proxy is treated as the scraper. All requests through a proxy belong to one
	// host for the bounds by host, so a flood through it affects only its own clients. If a proxy of these networks
	// adds X-Forwarded-For, that header names the host.
	Proxies []netip.Prefix
	// Logger receives a message if the positions of scrapers cannot be read. The default is slog.Default.
	Logger *slog.Logger

	vmMaxBytes int // MaxBytes for VictoriaMetrics; set by defaults
}

func (o *SecondsOptions) defaults() {
	o.vmMaxBytes = cmp.Or(o.MaxBytes, 15<<20)
	o.Namespace, o.Logger = cmp.Or(o.Namespace, table.Namespace), cmp.Or(o.Logger, slog.Default())
	o.MaxSamples, o.MaxBytes = cmp.Or(o.MaxSamples, DefaultMaxSamples), cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxCursors, o.CursorExpiry = cmp.Or(o.MaxCursors, DefaultMaxCursors), cmp.Or(o.CursorExpiry, DefaultCursorExpiry)
}

// Check returns all invalid options as [collector.OptionError]s.
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

// Log is the part of a metric log that [Seconds] uses; metriclog.Writer implements it.
type Log interface {
	seconds.Log
	// StateFile returns the path of a state file of the log with this name. A second call with the same name returns an
	// error, because two users would overwrite each other's state.
	StateFile(name string) (path string, err error)
}
