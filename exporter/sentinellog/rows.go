package sentinellog

import (
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// Rows calls f with the rows of a process in [from, to), Unix times, as a [Follower] with the directory dir exports
// them, until f returns an error. With sum, they are the rows of all processes of the application, as with
// [Options].Sum. The rows are in ascending order of seconds, and the total of inbound calls is the last one of a
// second. A row is valid until f returns. Memory is bounded by the rows of ten minutes.
func Rows(
	dir string, log metriclog.Log, sum bool, from, to int64, f func(resource string, m *node.MetricNode) error,
) error {
	var x past
	for from < to {
		block, end, err := x.read(dir, log, sum, from, to)
		if err != nil {
			return err
		}
		for ; from < end; from += rowsStep {
			if err := block.each(from, min(from+rowsStep, end), f); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// rowsStep is the number of seconds that Rows sorts at a time.
const rowsStep = 10

// each calls f with the rows in [from, to), sorted by second and name.
func (h *history) each(from, to int64, f func(resource string, m *node.MetricNode) error) error {
	type named struct {
		name string
		node.MetricNode
	}
	var rows []named
	var records []node.MetricNode
	for _, s := range h.list() {
		_, records = s.read(from, to, records[:0])
		for i := range records {
			rows = append(rows, named{strings.ToValidUTF8(s.name, "\uFFFD"), records[i]})
		}
	}
	slices.SortStableFunc(rows, func(a, b named) int { return a.Start.Compare(b.Start) })
	for i := range rows {
		if err := f(rows[i].name, &rows[i].MetricNode); err != nil {
			return err
		}
	}
	return nil
}
