package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A field is a metric that the metric log also has.
type field struct {
	metric string
	of     func(metriclog.Row) int64
}

var fields = []field{
	{"windowstat_persecond_pass", func(r metriclog.Row) int64 { return r.Pass }},
	{"windowstat_persecond_block", func(r metriclog.Row) int64 { return r.Block }},
	{"windowstat_persecond_complete", func(r metriclog.Row) int64 { return r.Success }},
	{"windowstat_persecond_exception", func(r metriclog.Row) int64 { return r.Exception }},
	{"windowstat_persecond_occupied_pass", func(r metriclog.Row) int64 { return r.OccupiedPass }},
	{"windowstat_persecond_in_flight_max", func(r metriclog.Row) int64 { return r.Concurrency }},
}

// A truth holds the rows of one resource in the metric log, by Unix second. A second without a row is idle.
type truth struct {
	since int64 // first second of the resource
	rows  map[int64]metriclog.Row
}

// stillFor is the number of idle seconds after which a resource sends only its passes.
const stillFor = 60

// sent reports whether a metric is sent for the second that follows an active second after the given number of seconds.
func (f field) sent(idle int64) bool { return f.metric == fields[0].metric || idle <= stillFor }

// values returns the values of a metric in all seconds before end for which the metric is sent.
func (x truth) values(f field, end int64) map[int64]float64 {
	all := map[int64]float64{}
	last := x.since - 1
	for second := x.since; second < end; second++ {
		row, ok := x.rows[second]
		if ok {
			last = second
		}
		if f.sent(second - last) {
			all[second] = float64(f.of(row))
		}
	}
	return all
}

// peak returns the highest number of passes in a second.
func (x truth) peak() (most int64) {
	for _, row := range x.rows {
		most = max(most, row.Pass)
	}
	return most
}

// truths reads the metric log, which must have ended.
func (s *service) truths() (map[string]truth, error) {
	all := map[string]truth{}
	for _, h := range habits() {
		since := s.stats.Resource(h.resource).View().Node().Since()
		all[h.resource] = truth{s.name(since), map[int64]metriclog.Row{}}
	}
	files, err := s.log.Files()
	if err != nil {
		return nil, err
	}
	rows, err := readLog(files)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		x := all[row.Resource]
		if row.Start.Unix() < x.since || x.rows == nil {
			return nil, fmt.Errorf("a row that should not be: %+v", row)
		}
		x.rows[row.Start.Unix()] = row
	}
	return all, nil
}

// readLog reads the rows of the resources in the files of a metric log, without the rows of all inbound traffic.
func readLog(files []string) ([]metriclog.Row, error) {
	rows, err := readRows(files)
	return slices.DeleteFunc(rows, func(r metriclog.Row) bool { return r.Resource == collector.InboundTotal }), err
}

// readRows reads the files of a metric log.
func readRows(files []string) (rows []metriclog.Row, err error) {
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			row, err := metriclog.Parse(line)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// open returns the open second; all seconds before it are sealed.
func (s *service) open() int64 { return s.name(s.stats.Seal().Open) }

// name returns the Unix second that names a second of the timeline.
func (s *service) name(index int64) int64 {
	at, _ := s.stats.Timeline().WallTime(index)
	return at.Unix()
}
