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
)

// Gap is some seconds of one instance of a service that a database lacks. It is safe for concurrent use.
type Gap struct {
	// Searcher is where the log is. App is needed if there are logs of several in the directory.
	Searcher metriclog.Searcher
	// PIDs are the processes whose logs belong to the instance; all if empty.
	PIDs []int
	// From and To are the first and the last second, both included.
	From, To time.Time
	// Match says which resources are wanted; nil is all. It must always say the same of a name.
	Match func(resource string) bool
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
}

// Scan is what the log has of a [Gap].
type Scan struct {
	Rows        int64 // of resources
	Malformed   int64 // lines that are none
	First, Last time.Time
}

// ErrSeveral says that there are rows of two processes or applications in one second: they are not one instance, and
// their samples would have the same labels.
var ErrSeveral = errors.New("there are rows of several processes")

// scan reads the log, to know what it has before something is done with that. The error is also one of reading that cost
// only a part of the rows.
func (g *Gap) scan(ctx context.Context) (Scan, error) {
	var found Scan
	var from metriclog.Log
	lines := func(malformed int64) { found.Malformed = malformed }
	err := g.rows(ctx, g.From, g.To, lines, func(row *metriclog.Row) error {
		log := metriclog.Log{App: row.App, PID: row.PID}
		if row.Start.Equal(found.Last) && log != from {
			return fmt.Errorf("%w: %s and %s at %s", ErrSeveral, from, log, row.Start.Format(time.RFC3339))
		}
		if found.First.IsZero() {
			found.First = row.Start
		}
		found.Last, from = row.Start, log
		if row.Resource != collector.InboundTotal {
			found.Rows++
		}
		return nil
	})
	return found, err
}

// before is how long before the gap the log is read, to know the resources that were idle in it.
const before = collector.DefaultRetireAfter

// emit gives the metric's samples to the sink, or those of all metrics if it is empty; most seconds of resources at a time.
func (g *Gap) emit(ctx context.Context, metric string, to time.Time, most int, sink seconds.Sink) error {
	log := seconds.NewFiller(g.namespace(), metric, g.From.Unix(), most, sink)
	err := g.rows(ctx, g.From.Add(-before), to, nil, func(row *metriclog.Row) error {
		record := row.Record()
		log.Add(strings.ToValidUTF8(row.Resource, "\uFFFD"), &record)
		return nil
	})
	log.Flush()
	return err
}

func (g *Gap) namespace() string {
	if g.Namespace == "" {
		return table.Namespace
	}
	return g.Namespace
}

// rows calls f for the rows, with those of all inbound traffic, which tell when the process lived. It tells malformed how
// many lines were none.
func (g *Gap) rows(ctx context.Context, from, to time.Time, malformed func(int64), f func(*metriclog.Row) error) (err error) {
	rows, err := g.Searcher.Search(metriclog.Query{From: from, To: to, PIDs: g.PIDs, Match: func(resource string) bool {
		return g.Match == nil || resource == collector.InboundTotal || g.Match(resource)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	var second time.Time
	for row := range rows.All() {
		if !row.Start.Equal(second) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			second = row.Start
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	if malformed != nil {
		malformed(rows.Malformed())
	}
	return nil
}
