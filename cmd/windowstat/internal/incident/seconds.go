// Package incident reads what metric logs have of an incident: which resources left their usual numbers, and in what order
// ([Seconds.Onsets]), what a limit would have refused ([Seconds.Backtest]), and a page for a browser that has both and the seconds
// themselves ([Report]).
package incident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Before is how many seconds before the range say what is usual.
const Before = 600

// after is how many seconds behind the range are read, to see whether what began in it lasted.
const after = steady - 1

// maxRows bounds the memory, some 30 bytes for each.
const maxRows = 5_000_000

// Seconds are the rows of a range, and of the ten minutes before it, in memory.
type Seconds struct {
	From, To int64          // Unix times of the first and the last second
	Zone     *time.Location // of times that are shown, with the offset of From
	logs     []*log
}

// log is one log of a directory.
type log struct {
	name        string // shop, or shop.pid12; with its directory if another one has the name, too
	host        int    // its directory: clocks of several may differ
	first, last int64  // seconds that it has, within what was read
	resources   []*resource
	byName      map[string]*resource // these, and the total of inbound calls
}

// resource is the rows of a resource in a log, ascending. A second without calls has none.
type resource struct {
	name           string
	log            *log
	rows           []row
	passed, harmed int64 // calls that passed, and that were refused or failed
}

// row is a second: its Unix time, and the numbers of the log, cut at two billion.
type row struct {
	at int64
	v  [columns]int32
}

// offered are the calls of a second: those that passed, and those that were refused.
func (x *row) offered() int64  { return x.refused() + int64(x.v[pass]) }
func (x *row) refused() int64  { return int64(x.v[block]) }
func (x *row) inFlight() int64 { return int64(x.v[inFlight]) }

// The columns of a row.
const (
	pass = iota
	block
	complete
	exception
	rtMs
	inFlight
	columns
)

// names are those of the columns, as windowstat log has them, but for the unit of response times.
var names = [columns]string{"pass", "block", "complete", "exception", "rt_avg_ms", "in_flight_max"}

// Read reads the rows that the selections choose, whose ranges are the same. Each selection is a directory, taken for a host. What
// was left out is printed to stderr. The error says what could not be read, or that there is too much of it.
func Read(ctx context.Context, all []*logquery.Selection, stderr io.Writer) (*Seconds, error) {
	name, offset := all[0].From.In(all[0].Zone).Zone()
	s := &Seconds{From: all[0].From.Unix(), To: all[0].To.Unix(), Zone: time.FixedZone(name, offset)}
	n := 0
	for host, sel := range all {
		query := sel.Query
		query.From, query.To = sel.From.Add(-Before*time.Second), sel.To.Add(after*time.Second)
		if sel.Match != nil {
			query.Match = func(name string) bool { return name == collector.InboundTotal || sel.Match(name) }
		}
		rows, err := sel.Searcher.Search(query)
		if err != nil {
			return nil, err
		}
		logs := map[metriclog.Log]*log{}
		err = rows.Each(ctx, func(r *metriclog.Row) error {
			if n++; n > maxRows {
				return fmt.Errorf("there are more than %d rows; a shorter range, or --resource, is needed", maxRows)
			}
			id := metriclog.Log{App: r.App, PID: r.PID}
			l := logs[id]
			if l == nil {
				l = s.open(id, host, sel)
				logs[id] = l
			}
			l.add(r)
			return nil
		})
		if err := errors.Join(err, rows.Close(), rows.Err()); err != nil {
			return nil, err
		}
		sel.Malformed(stderr, rows.Malformed())
		if len(logs) == 0 {
			sel.Empty(stderr, nil, 0)
		}
	}
	if n == 0 {
		return nil, errors.New("there is nothing to look at")
	}
	return s, nil
}

// open adds a log of a directory.
func (s *Seconds) open(id metriclog.Log, host int, sel *logquery.Selection) *log {
	l := &log{name: id.String(), host: host, byName: map[string]*resource{}}
	own := metriclog.Searcher{Dir: sel.Searcher.Dir, App: id.App}
	first, last, _ := own.Span(id.PID) // it has just been read
	l.first, l.last = max(first.Unix(), s.From-Before), min(last.Unix(), s.To+after)
	for _, other := range s.logs {
		if other.name == l.name {
			l.name = sel.Searcher.Dir + ": " + l.name
		}
	}
	s.logs = append(s.logs, l)
	return l
}

// add adds a row. Rows come by second, so those of a resource ascend.
func (l *log) add(r *metriclog.Row) {
	x := l.byName[r.Resource]
	if x == nil {
		x = &resource{name: r.Resource, log: l}
		l.byName[r.Resource] = x
		if r.Resource != collector.InboundTotal {
			l.resources = append(l.resources, x)
		}
	}
	next := row{at: r.Start.Unix()}
	for i, n := range [columns]int64{r.Pass, r.Block, r.Success, r.Exception, r.RT.Milliseconds(), r.Concurrency} {
		next.v[i] = int32(min(n, math.MaxInt32))
	}
	x.rows = append(x.rows, next)
	x.passed += int64(next.v[pass])
	x.harmed += int64(next.v[block]) + int64(next.v[exception])
}

// resources returns the resources of all logs.
func (s *Seconds) resources() (all []*resource) {
	for _, l := range s.logs {
		all = append(all, l.resources...)
	}
	return all
}

// time returns a second, in the zone.
func (s *Seconds) time(at int64) time.Time { return time.Unix(at, 0).In(s.Zone) }

// Notes are what limits the answers: logs that end before the range does, and for onsets those that hardly say what is usual.
func (s *Seconds) Notes(onsets bool) (notes []string) {
	for _, l := range s.logs {
		if n := max(0, s.From-l.first); onsets && n < 60 {
			notes = append(notes, fmt.Sprintf("the log %s has only %d seconds before %s to say what is usual", l.name, n, s.time(s.From).Format(logquery.TimeLayout)))
		}
		if l.last < s.To-steady {
			notes = append(notes, fmt.Sprintf("the log %s ends at %s", l.name, s.time(l.last).Format(logquery.TimeLayout)))
		}
	}
	return notes
}
