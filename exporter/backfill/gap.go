package backfill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// Gap is a range of seconds that a database lacks, of one instance of a service. It is safe for concurrent use.
type Gap struct {
	// Searcher finds the log. App is required if the directory has logs of several applications.
	Searcher metriclog.Searcher
	// PIDs are the processes of the instance; all if empty.
	PIDs []int
	// From and To are the first and the last second, both included.
	From, To time.Time
	// Match selects resources by name; nil selects all. It must be a pure function.
	Match func(resource string) bool
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
}

// Scan counts what the log has of a [Gap].
type Scan struct {
	Rows        int64 // of resources
	Malformed   int64 // skipped lines
	First, Last time.Time
}

// ErrSeveral is the error for rows of two processes or applications in one second: they are not one instance, and their samples
// would have the same labels.
var ErrSeveral = errors.New("rows of several processes")

// scan reads the log before anything is written. The error may also be a read error that cost only some of the rows.
func (g *Gap) scan(ctx context.Context) (Scan, error) {
	var scan Scan
	var one instance
	lines := func(malformed int64) { scan.Malformed = malformed }
	err := g.rows(ctx, g.From, g.To, lines, func(row *metriclog.Row) error {
		if err := one.see(row); err != nil {
			return err
		}
		if scan.First.IsZero() {
			scan.First = row.Start
		}
		scan.Last = row.Start
		if row.Resource != collector.InboundTotal {
			scan.Rows++
		}
		return nil
	})
	return scan, err
}

// instance sees the rows of one instance, in order.
type instance struct {
	last time.Time
	log  metriclog.Log
}

func (x *instance) see(row *metriclog.Row) error {
	log := metriclog.Log{App: row.App, PID: row.PID}
	if row.Start.Equal(x.last) && log != x.log {
		return fmt.Errorf("%w: %s and %s at %s", ErrSeveral, x.log, log, row.Start.Format(time.RFC3339))
	}
	x.last, x.log = row.Start, log
	return nil
}

// lookback is how long before the gap rows are read, to find resources that were idle in it.
const lookback = collector.DefaultRetireAfter

// emit gives the samples of a metric to the sink, or of all metrics if it is empty; most is seconds of resources at a time.
func (g *Gap) emit(ctx context.Context, metric string, to time.Time, most int, sink seconds.Sink) error {
	return g.fill(ctx, seconds.NewFiller(g.namespace(), metric, nil, g.From.Unix(), most, sink), to, nil, func(*metriclog.Row, bool) error { return nil })
}

// Emit gives the sink the samples that [Gap.RemoteWrite] writes, in parts of about most seconds of resources. After each part it
// calls ended with the second before which the sink has all of them. It returns how many malformed lines were skipped.
func (g *Gap) Emit(ctx context.Context, most int, sink seconds.Sink, ended func(before time.Time) error) (malformed int64, err error) {
	var one instance
	err = g.fill(ctx, seconds.NewFiller(g.namespace(), "", nil, g.From.Unix(), most, sink), g.To, func(n int64) { malformed = n }, func(row *metriclog.Row, emitted bool) error {
		if emitted {
			if err := ended(row.Start); err != nil {
				return err
			}
		}
		if row.Start.Before(g.From) {
			return nil
		}
		return one.see(row)
	})
	if err == nil {
		err = ended(g.To.Add(time.Second))
	}
	return malformed, err
}

// fill adds the rows to the filler, and calls added after each of them.
func (g *Gap) fill(ctx context.Context, to *seconds.Filler, end time.Time, malformed func(int64), added func(row *metriclog.Row, emitted bool) error) error {
	err := g.rows(ctx, g.From.Add(-lookback), end, malformed, func(row *metriclog.Row) error {
		record := row.Record()
		if g.Match != nil && row.Resource == collector.InboundTotal {
			record = node.MetricNode{Start: row.Start} // the process ran; the total is not selected
		}
		return added(row, to.Add(strings.ToValidUTF8(row.Resource, "\uFFFD"), &record))
	})
	to.Flush()
	return err
}

func (g *Gap) namespace() string {
	if g.Namespace == "" {
		return table.Namespace
	}
	return g.Namespace
}

// rows calls f for the rows, including the total of inbound calls, which shows when the process ran. It calls malformed with
// the number of malformed lines.
func (g *Gap) rows(ctx context.Context, from, to time.Time, malformed func(int64), f func(*metriclog.Row) error) (err error) {
	rows, err := g.Searcher.Search(metriclog.Query{From: from, To: to, PIDs: g.PIDs, Match: func(resource string) bool {
		return g.Match == nil || resource == collector.InboundTotal || g.Match(resource)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	if err := rows.Each(ctx, f); err != nil {
		return err
	}
	if malformed != nil {
		malformed(rows.Malformed())
	}
	return nil
}
