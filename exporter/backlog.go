package exporter

import (
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Backlog hands the rows of a metric log on as the seconds that a server would have had of them: the metrics of [Seconds]
// that the log has, under the same names and labels, and the idle seconds that have no row. An idle second of a resource
// is zero if anything else was logged in that second, so that the process is known to have lived, and the resource had a
// row in the hour before.
//
// It must be made with [NewBacklog]. It is not safe for concurrent use. It takes the memory of the rows that are handed on
// together.
type Backlog struct {
	walk
	lived
	from int64 // what is before it is not handed on
	most int   // seconds of resources at a time
	size int   // how many there are so far
}

// NewBacklog makes a Backlog for the seconds from from on, a Unix time. It is to have the rows of the hour before, too,
// so that it knows the resources; they are not handed on. Only the metric with this full name is handed on, all if it is
// empty; a name that is not in the log is a mistake and panics.
//
// The sink gets about so many seconds of resources at a time, series by series. The next time it gets the same series
// again, with later seconds.
func NewBacklog(namespace, metric string, from int64, most int, sink Sink) *Backlog {
	b := &Backlog{lived: lived{known: map[string]*life{}}, from: from, most: most}
	b.sink = sink
	for _, m := range loggedFamilies(namespace) {
		if metric == "" || metric == m.family.Name {
			b.metrics = append(b.metrics, &m)
		}
	}
	if len(b.metrics) == 0 {
		panic("exporter: the metric log has no " + metric)
	}
	return b
}

// Logged are the full names of the metrics that the metric log has, in the order of [Seconds].
func Logged(namespace string) (names []string) {
	for _, m := range loggedFamilies(namespace) {
		names = append(names, m.family.Name)
	}
	return names
}

func loggedFamilies(namespace string) (list []secondFamily) {
	for _, m := range Seconds() {
		if m.Logged {
			list = append(list, secondFamily{m, Family{namespace + "_" + m.Name, Gauge, m.Help}})
		}
	}
	return list
}

// Add adds a row. Rows have to come in order, as they stand in the log; one that is out of place is left out. The record
// is the caller's.
func (b *Backlog) Add(resource string, m *node.MetricNode) {
	at := m.Start.Unix()
	if at >= b.from && at > b.last() {
		if b.size += max(len(b.known), 1); b.size >= b.most {
			b.Flush()
		}
		b.alive = append(b.alive, at)
	}
	if resource == collector.InboundTotal || at >= b.from && at < b.last() {
		return
	}
	x := b.known[resource]
	if x == nil {
		x = &life{}
		b.known[resource] = x
	}
	if at >= b.from {
		x.add(m)
	} else {
		x.before = max(x.before, at)
	}
}

// forget is when a resource is not known any more: a Collector has forgotten it then, too.
const forget = collector.DefaultRetireAfter

// Flush hands on what was not yet. It is needed at the end.
func (b *Backlog) Flush() {
	if len(b.alive) == 0 {
		return
	}
	last := b.last()
	for _, name := range slices.Sorted(maps.Keys(b.known)) {
		x := b.known[name]
		b.resource(name, b.fill(x, forget))
		if n := len(x.rows); n > 0 {
			x.before = x.rows[n-1].Start.Unix()
		}
		x.rows = x.rows[:0]
		if last-x.before > int64(forget/time.Second) {
			delete(b.known, name)
		}
	}
	b.alive, b.size, b.from = b.alive[:0], 0, last+1
}
