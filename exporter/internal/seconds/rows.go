package seconds

import (
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// RowWriter writes the samples of logged rows to a Sink, one resource after the other. It adds the idle seconds, which
// have no row. [Filler] and the stream of Sentinel's logs use it. It is not safe for concurrent use.
type RowWriter struct {
	sink     Sink
	emitters [kinds]emitter
	run      table.Family
}

// NewRowWriter returns a writer of the selected metrics for which has returns true. Sentinel adds the metrics that only
// logs of Sentinel have.
func NewRowWriter(namespace string, sentinel bool, s *Selection, has func(*table.Second) bool, sink Sink) *RowWriter {
	w := &RowWriter{sink: sink, run: table.Run(namespace)}
	rows := tables()
	if sentinel {
		rows = sentinelTables()
	}
	for kind, f := range newFamilies(namespace, rows, has) {
		w.emitters[kind] = f.emitter(s, sink)
	}
	return w
}

// Past holds the rows of a resource before the rows that are written.
type Past struct {
	before int64 // last second with a row; 0 if none
	idle   idleness
}

// ActiveAt returns the Past of a resource that was last active in the second unix, or never if unix is 0.
func ActiveAt(unix int64) Past {
	if unix == 0 {
		return Past{idle: unknown}
	}
	return Past{unix, idleness(unix)}
}

// observe records a row. Rows must ascend.
func (p *Past) observe(m *node.MetricNode) {
	p.idle.observe(m)
	p.before = max(p.before, m.Start.Unix())
}

// Write writes the seconds in present, the seconds in which the process ran, in ascending order. rows are the rows of
// one resource in these seconds. If total is set, they are the rows of all inbound traffic.
//
// A second without a row counts as zero if an earlier row, at most an hour before, names the resource. Past is updated
// to the end of the rows.
func (w *RowWriter) Write(total bool, past *Past, present []int64, rows []node.MetricNode, labels, values []string) {
	e := &w.emitters[resources]
	if total {
		e = &w.emitters[inbound]
	}
	e.seconds = e.seconds[:0]
	rest, last := rows, past.before
	for _, second := range present {
		switch {
		case len(rest) > 0 && rest[0].Start.Unix() == second:
			e.seconds = append(e.seconds, rest[0])
			rest, last = rest[1:], second
		case last != 0 && second-last <= int64(maxIdle/time.Second):
			e.seconds = append(e.seconds, node.MetricNode{Start: time.Unix(second, 0)})
		}
	}
	past.before = last
	e.setStates(&past.idle)
	e.emit(labels, values)
}

// WriteRun writes the run of each second for which id does not return 0.
func (w *RowWriter) WriteRun(present []int64, id func(unix int64) int64, labels, values []string) {
	w.sink.Series(&w.run, labels, values)
	for _, second := range present {
		if run := id(second); run != 0 {
			w.sink.Value(second, float64(run))
		}
	}
}

// Size returns the size of a second with a row, and of a second in which the resource has been idle for more than a
// minute, both without the labels.
func (w *RowWriter) Size(total bool) (active, idle Size) {
	e := &w.emitters[resources]
	if total {
		e = &w.emitters[inbound]
	}
	for _, m := range e.metrics {
		line := Size{1, lineBytes + len(m.family.Name)}
		active = active.Add(line)
		if m.Always {
			idle = idle.Add(line)
		}
	}
	return active, idle
}

// RunSize returns the size of the run of one second, without labels.
func (w *RowWriter) RunSize() Size { return Size{1, lineBytes + len(w.run.Name)} }

// LabelBytes returns the approximate length of labels in a line.
func LabelBytes(names, values []string) (n int) {
	for i, value := range values {
		n += labelBytes(names[i], value)
	}
	return n
}
