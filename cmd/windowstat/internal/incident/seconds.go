// Package incident evaluates the metric logs of an incident, for windowstat onset, windowstat backtest and windowstat
// report:
//
//   - [Read] reads the seconds of the range, and of the ten minutes before.
//   - [Seconds.Onsets] finds the resources whose numbers changed, in the order of the changes.
//   - [Seconds.Backtest] counts the calls that a limit would have refused.
//   - [Answers] prints these results.
//   - [Report] writes a page for a browser with the results and with charts of the seconds.
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

// Before is the number of seconds before the range that are read, too. They show the usual numbers of a resource.
const Before = 600

// after is the number of seconds after the range that are read, too. The rule for a change in the last second of the
// range needs them.
const after = runSeconds - 1

// maxRows is the maximum number of rows in memory. A row takes about 30 bytes, so they take 150 MB.
const maxRows = 5_000_000

// Seconds has the rows of the range and of the seconds around it, in memory, by log and resource. Create it with
// [Read].
type Seconds struct {
	// The rows also include Before seconds earlier and a few seconds later.
	From, To int64          // Unix times of the first and the last second
	Zone     *time.Location // for output: the offset of From, so that all times of an incident have the same one
	logs     []*log
}

// log has the rows of one log, the seconds of one process on one host.
type log struct {
	// The name is printed with each finding.
	name string // such as shop or shop.pid12; the directory precedes it if two logs have the same name
	// Onsets on different hosts need a larger distance to have an order, because the hosts have separate clocks.
	host        int   // index of the directory; clocks of different hosts may differ
	first, last int64 // Unix times of its first and last second, limited to the seconds that were read
	resources   []*resource
	// byName finds the resource of a row. It also has the total of inbound calls. The total is not in resources,
	// because findings about the total would repeat the findings about resources.
	byName map[string]*resource // resources, and the total of inbound calls
}

// resource has the rows of a resource in a log, in the order of their seconds. A second without calls has no row.
type resource struct {
	name string
	log  *log
	// rows has gaps: a reader must compare the second of each row instead of its index.
	rows []row
	// passed and failed determine the order of the charts in a report.
	passed int64 // in all rows
	failed int64 // blocked calls and exceptions in all rows
}

// row has the Unix time of a second and its numbers. Numbers are limited to 2^31-1, which saves half of the memory.
type row struct {
	// A row has 4 bytes for each number instead of 8, because maxRows of them must fit into memory.
	at int64
	v  [columns]int32
}

// offered returns the calls of a second that arrived: passed and blocked ones.
func (x *row) offered() int64  { return x.blocked() + int64(x.v[pass]) }
func (x *row) blocked() int64  { return int64(x.v[block]) }
func (x *row) inFlight() int64 { return int64(x.v[inFlight]) }

// The columns of a row. rtMs is the average response time in milliseconds.
const (
	pass = iota
	block
	complete
	exception
	rtMs
	inFlight
	columns
)

// names has the names of the columns in output. They are those of windowstat log, with the unit of the response time.
var names = [columns]string{"pass", "block", "complete", "exception", "rt_avg_ms", "in_flight_max"}

// Read reads the selected rows. Each selection is a directory with the log of a host, and all selections must have the
// same range. Read prints the number of omitted lines to stderr. It returns an error if a directory cannot be read, if
// there are no rows, or if there are more than maxRows.
func Read(ctx context.Context, all []*logquery.Selection, stderr io.Writer) (*Seconds, error) {
	name, offset := all[0].From.In(all[0].Zone).Zone()
	s := &Seconds{From: all[0].From.Unix(), To: all[0].To.Unix(), Zone: time.FixedZone(name, offset)}
	n := 0
	for host, sel := range all {
		// The query of the selection has the range and the process ids. Change a copy, because the caller keeps the
		// selection.
		query := sel.Query
		// Read more than the range: the time before is the baseline, and the seconds after complete the last run.
		query.From, query.To = sel.From.Add(-Before*time.Second), sel.To.Add(after*time.Second)
		if sel.Match != nil {
			// A report needs the total of inbound calls with any selection of resources.
			query.Match = func(name string) bool { return name == collector.InboundTotal || sel.Match(name) }
		}
		rows, err := sel.Searcher.Search(query)
		if err != nil {
			return nil, err
		}
		// A directory may have the logs of several applications and processes. Each pair has a separate log.
		logs := map[metriclog.Log]*log{}
		err = rows.Each(ctx, func(r *metriclog.Row) error {
			// The limit is on all logs together. The error ends the reading before memory is exhausted.
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

// open adds a log, whose first row was just read.
func (s *Seconds) open(id metriclog.Log, host int, sel *logquery.Selection) *log {
	l := &log{name: id.String(), host: host, byName: map[string]*resource{}}
	// Read the times of the log of this process only: another process may have started or ended at a different time.
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

// add adds a row to its resource. Rows must arrive in the order of their seconds.
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

// resources returns the resources of all logs, without the totals.
func (s *Seconds) resources() (all []*resource) {
	for _, l := range s.logs {
		all = append(all, l.resources...)
	}
	return all
}

// time returns the time of a second in the zone of s.
func (s *Seconds) time(at int64) time.Time { return time.Unix(at, 0).In(s.Zone) }

// Notes returns notes about incomplete data: about logs that end before the range does, and, if onsets is true, about
// logs with less than a minute before the range to compare with.
func (s *Seconds) Notes(onsets bool) (notes []string) {
	for _, l := range s.logs {
		// An onset needs a baseline. With less than a minute, hardly any variation is known, so the user is warned.
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
