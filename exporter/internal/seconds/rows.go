package seconds

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// RowFamilies holds the metrics of logged rows. It is safe for concurrent use. All samples of a page must have the same
// RowFamilies.
type RowFamilies struct {
	families [kinds]families
	run      table.Family
}

// NewRowFamilies returns the metrics that metric logs have without loss.
func NewRowFamilies(namespace string) *RowFamilies {
	logged := func(m *table.Second) bool { return m.Logged }
	return &RowFamilies{newFamilies(namespace, tables(), logged), table.Run(namespace)}
}

// NewSentinelFamilies returns the metrics that Sentinel's metric logs have, see [table.SentinelSeconds].
func NewSentinelFamilies(namespace string) *RowFamilies {
	all := func(*table.Second) bool { return true }
	return &RowFamilies{newFamilies(namespace, sentinelTables(), all), table.Run(namespace)}
}

// Knows reports whether there is a metric with this full name.
func (f *RowFamilies) Knows(metric string) bool {
	return metric == f.run.Name || slices.Contains(f.names(), metric)
}

func (f *RowFamilies) names() (names []string) {
	for i := range f.families {
		for _, m := range f.families[i].metrics {
			names = append(names, m.family.Name)
		}
	}
	return names
}

// RowWriter writes the samples of logged rows to a Sink, one resource after the other. It adds the idle seconds, which
// have no row. [Filler] and the stream of Sentinel's logs use it. It is not safe for concurrent use.
type RowWriter struct {
	sink     Sink
	emitters [kinds]emitter
	run      *table.Family
}

// Writer returns a writer of the selected metrics.
func (f *RowFamilies) Writer(s *Selection, sink Sink) *RowWriter {
	w := &RowWriter{sink: sink, run: &f.run}
	for kind := range f.families {
		w.emitters[kind] = f.families[kind].emitter(s, sink)
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
	kind := resources
	if total {
		kind = inbound
	}
	e := &w.emitters[kind]
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
	w.sink.Series(w.run, labels, values)
	for _, second := range present {
		if run := id(second); run != 0 {
			w.sink.Value(second, float64(run))
		}
	}
}

// Size returns the size of a second with a row, and of a second in which the resource has been idle for more than a
// minute, both without the labels.
func (w *RowWriter) Size(total bool) (active, idle Size) {
	kind := resources
	if total {
		kind = inbound
	}
	for _, m := range w.emitters[kind].metrics {
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
