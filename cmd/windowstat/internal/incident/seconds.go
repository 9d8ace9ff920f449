// Package incident evaluates the metric logs of an incident. [Read] reads the seconds. [Seconds.Onsets] finds the
// resources that changed, in the order of their changes. [Seconds.Backtest] counts the calls that a limit would have
// refused. [Report] writes a page for a browser with the results of both and charts of the seconds.
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

// Before is the number of seconds before the range that the range is compared with.
const Before = 600

// after is the number of seconds after the range that are read. A change in the last second of the range needs them.
const after = runSeconds - 1

// maxRows bounds the memory. A row takes about 30 bytes.
const maxRows = 5_000_000

// Seconds has the rows of a range and of the ten minutes before it, in memory.
type Seconds struct {
	From, To int64          // Unix times of the first and the last second
	Zone     *time.Location // for output, with the offset of From
	logs     []*log
}

// log has the rows of one log of a directory.
type log struct {
	name        string // shop or shop.pid12, with its directory if another log has the same name
	host        int    // index of its directory; clocks of hosts may differ
	first, last int64  // Unix times of its first and last second, within the seconds that were read
	resources   []*resource
	byName      map[string]*resource // resources, and the total of inbound calls
}

// resource has the rows of a resource in a log, in ascending order. A second without calls has no row.
type resource struct {
	name   string
	log    *log
	rows   []row
	passed int64
	failed int64 // blocked calls and exceptions
}

// row has the Unix time of a second and its numbers in the log, at most 2^31-1.
type row struct {
	at int64
	v  [columns]int32
}

// offered returns the calls of a second, passed and blocked.
func (x *row) offered() int64  { return x.blocked() + int64(x.v[pass]) }
func (x *row) blocked() int64  { return int64(x.v[block]) }
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

// names has the names of the columns. windowstat log prints the same names, but without the unit of the response time.
var names = [columns]string{"pass", "block", "complete", "exception", "rt_avg_ms", "in_flight_max"}

// Read reads the selected rows. All selections must have the same range. Each selection is a directory, the log of a
// host. Read prints the number of omitted lines to stderr. It returns an error if a directory cannot be read, if there
// are no rows, or if there are more than maxRows.
func Read(ctx context.Context, all []*logquery.Selection, stderr io.Writer) (*Seconds, error) {
	name, offset := all[0].From.In(all[0].Zone).Zone()
	s := &Seconds{From: all[0].From.Unix(), To: all[0].To.Unix(), Zone: time.FixedZone(name, offset)}
	n := 0
	for host, sel := range all {
		query := sel.Query
		query.From, query.To = sel.From.Add(-Before*time.Second), sel.To.Add(after*time.Second)
		if sel.Match != nil {
			// A report needs the total of inbound calls with any selection of resources.
			query.Match = func(name string) bool { return name == collector.InboundTotal || sel.Match(name) }
		}
		rows, err := sel.Searcher.Search(query)
		if err != nil {
			return nil, err
		}
		logs := map[metriclog.Log]*log{}
		err = rows.Each(ctx, func(r *metriclog.Row) error {
			if n++; n > maxRows {
				return fmt.Errorf("more than %d rows; select fewer with --from, --to or --resource", maxRows)
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
		return nil, errors.New("no rows in the range or in the ten minutes before")
	}
	return s, nil
}

// open adds a log of a directory.
func (s *Seconds) open(id metriclog.Log, host int, sel *logquery.Selection) *log {
	l := &log{name: id.String(), host: host, byName: map[string]*resource{}}
	own := metriclog.Searcher{Dir: sel.Searcher.Dir, App: id.App}
	first, last, _ := own.Span(id.PID) // the log was read just now
	l.first, l.last = max(first.Unix(), s.From-Before), min(last.Unix(), s.To+after)
	for _, other := range s.logs {
		if other.name == l.name {
			l.name = sel.Searcher.Dir + ": " + l.name
		}
	}
	s.logs = append(s.logs, l)
	return l
}

// add adds a row. Rows arrive in the order of their seconds.
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
	x.failed += int64(next.v[block]) + int64(next.v[exception])
}

// resources returns the resources of all logs.
func (s *Seconds) resources() (all []*resource) {
	for _, l := range s.logs {
		all = append(all, l.resources...)
	}
	return all
}

// time returns the time of a second in the zone of s.
func (s *Seconds) time(at int64) time.Time { return time.Unix(at, 0).In(s.Zone) }

// Notes returns notes about incomplete data: logs that end before the range, and, for onsets, logs with less than a
// minute before the range.
func (s *Seconds) Notes(onsets bool) (notes []string) {
	for _, l := range s.logs {
		if n := max(0, s.From-l.first); onsets && n < 60 {
			notes = append(notes, fmt.Sprintf("the log %s has only %d seconds before %s to compare with",
				l.name, n, s.time(s.From).Format(logquery.TimeLayout)))
		}
		if l.last < s.To-runSeconds {
			last := s.time(l.last).Format(logquery.TimeLayout)
			notes = append(notes, fmt.Sprintf("the log %s ends at %s", l.name, last))
		}
	}
	return notes
}
