package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A field is a metric that the metric log has too.
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

// A truth is what one resource did, by Unix second: what the metric log has. A second without a row is idle.
type truth struct {
	since int64 // the second in which the resource began
	rows  map[int64]metriclog.Row
}

// stillFor is how many seconds a resource is idle until it sends its passes alone.
const stillFor = 60

// sent reports whether a metric is sent of a second that is so many after one that was not idle.
func (f field) sent(idle int64) bool { return f.metric == fields[0].metric || idle <= stillFor }

// values are those of a metric in all seconds before end, where it is sent.
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

// peak is the most calls that passed in a second.
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

// readLog reads the rows of resources in the files of a metric log: all but those of all inbound traffic.
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

// open is the second that is open now; all before it are sealed.
func (s *service) open() int64 { return s.name(s.stats.Seal().Open) }

// name is the Unix second that a second of the timeline is named after.
func (s *service) name(index int64) int64 {
	at, _ := s.stats.Timeline().WallTime(index)
	return at.Unix()
}
