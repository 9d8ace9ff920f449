package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// keptSeconds is how many seconds a new viewer gets.
const keptSeconds = 180

// feed encodes each second as an event, once for all viewers. Events have numbers in place of the long names of resources.
type feed struct {
	stats   *collector.Collector
	rows    int
	columns *columns
	process int64 // differs between processes

	mu      sync.Mutex // guards what follows
	epoch   int64      // of the numbering; begins with process
	numbers map[string]int
	names   []string // by number
	events  []event  // ascending, at most keptSeconds
	next    int64    // index of the second after the last one
	inbound bool     // the total is of inbound traffic
	all     piece    // the names, as they were when there were allOf
	allOf   int
}

// event is an encoded second.
type event struct {
	unix   int64
	second piece // [time,rows]
	names  piece // those that were numbered in it
	known  int   // names, from then on
}

func newFeed(c *collector.Collector, rows int) *feed {
	start := time.Now().UnixMilli()
	return &feed{
		stats: c, rows: rows, columns: columnsOf(inFeed, c.DurationsUnknown()),
		process: start, epoch: start, numbers: map[string]int{}, names: []string{""},
	}
}

// maxNames limits the names. Beyond it, numbering restarts, and viewers reset.
const maxNames = 100_000

// update is what a viewer has not received yet. Its pieces are those of the feed, for all viewers.
type update struct {
	events  []event // ascending
	names   pieces  // those numbered from first on
	first   int
	fresh   bool     // the viewer must reset
	inbound bool     // the total is of inbound traffic, and not the sum of the rows
	process int64    // differs between processes; for a viewer that is fresh
	columns []string // names of columns, for a viewer that is fresh
	now     position
}

// position is the position of a viewer: its last second, and how many names it knows in which numbering.
type position struct {
	unix, epoch int64
	known       int
}

// after returns the update since a position. A viewer that was away for long, or whose position is made up, gets all names again.
func (f *feed) after(p position) update {
	m := f.stats.Seal()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.make(m)
	if p.epoch != f.epoch || p.known < 0 || p.known > len(f.names) {
		p = position{}
	}
	i, _ := slices.BinarySearchFunc(f.events, p.unix+1, func(e event, unix int64) int { return cmp.Compare(e.unix, unix) })
	n := update{events: slices.Clone(f.events[i:]), fresh: p.known == 0, inbound: f.inbound}
	if n.fresh { // another process may have other columns
		n.process, n.columns = f.process, f.columns.names
	}
	switch {
	case i > 0 && f.events[i-1].known == p.known:
		n.first = p.known
		for _, e := range n.events {
			if len(e.names.plain) > 0 {
				n.names = n.names.add(e.names, len(n.names) == 0)
			}
		}
	case len(f.events) == 0 && p.known == len(f.names):
		n.first = p.known
	default:
		if f.allOf != len(f.names) {
			f.all, f.allOf = pieceOfNames(f.names), len(f.names)
		}
		n.names = pieces{f.all}
	}
	n.now = position{p.unix, f.epoch, len(f.names)}
	if k := len(n.events); k > 0 {
		n.now.unix = n.events[k-1].unix
	}
	return n
}

// make encodes all seconds before the open one. Holds mu.
func (f *feed) make(m collector.Moment) {
	f.inbound = f.inbound || f.stats.Inbound().Node().Used()
	if from := m.Open - keptSeconds; f.next < from {
		f.next, f.events = max(from, f.stats.Tree().View().Node().Since()), nil
	}
	if len(f.names) > maxNames {
		f.numbers, f.names, f.events, f.allOf = map[string]int{}, []string{""}, nil, 0
		f.epoch++
	}
	for ; f.next < m.Open; f.next++ {
		name, ok := f.stats.Timeline().Name(f.next)
		if !ok {
			continue
		}
		e, known := event{unix: name.Unix()}, len(f.names)
		rows := f.second(f.next, m)
		e.second = pieceOf(fmt.Appendf(nil, "[%d,%s]", e.unix, rows))
		if e.known = len(f.names); e.known > known {
			e.names = pieceOfNames(f.names[known:])
		}
		f.events = append(f.events, e)
	}
	if n := len(f.events) - keptSeconds; n > 0 {
		f.events = slices.Delete(f.events, 0, n)
	}
}

// Numbers of rows that are of no resource. While nothing was inbound, a second has a sum of all resources instead; a viewer
// drops the sums when it hears of the first inbound call.
const (
	numberInbound = 0
	numberSum     = -1
)

// row is a second of a resource.
type row struct {
	number int
	m      node.MetricNode
	p99    time.Duration
}

// sumOf adds up what adds up of the rows: counts, what was in flight, and the response times for their average.
func sumOf(rows []row) row {
	sum := row{number: numberSum, p99: none}
	for _, c := range node.Columns() {
		switch c.Kind {
		case node.Count, node.Level:
			for i := range rows {
				*c.At(&sum.m) += *c.At(&rows[i].m)
			}
		case node.Peak:
			*c.At(&sum.m) = -1 // unknown: the rows had theirs at different moments
		}
	}
	for i := range rows {
		sum.m.RTSum += rows[i].m.RTSum
	}
	return sum
}

// second makes the rows of a second: the number of the resource, then its columns.
func (f *feed) second(index int64, m collector.Moment) []byte {
	var h node.Histogram
	var rows []row
	read := func(number func() int, v *node.View) {
		second, ok := v.Second(index)
		if !ok || second.Idle() {
			return
		}
		x := row{number: number(), m: second, p99: none}
		if v.Histogram(index, index+1, &h) && h.Count() > 0 { // or it is gone
			x.p99 = h.Quantile(0.99)
		}
		rows = append(rows, x)
	}
	for _, r := range m.Resources {
		read(func() int { return f.number(r.Name()) }, r.View().Node())
	}
	total := len(rows)
	if f.inbound {
		read(func() int { return numberInbound }, f.stats.Inbound().Node())
	} else if total > 0 {
		rows = append(rows, sumOf(rows))
	}
	rows, totals := rows[:total], rows[total:]
	if len(rows) > f.rows {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.m.Total()+b.m.Complete, a.m.Total()+a.m.Complete) })
		rows = rows[:f.rows]
	}
	rows = slices.Concat(totals, rows)
	b := []byte{'['}
	for i := range rows {
		x := &rows[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(x.number), 10)
		b = append(f.columns.append(b, &x.m, x.p99), ']')
	}
	return append(b, ']')
}

// number returns the number of a name. Holds mu.
func (f *feed) number(name string) int {
	n, ok := f.numbers[name]
	if !ok {
		n = len(f.names)
		f.numbers[name] = n
		f.names = append(f.names, name)
	}
	return n
}

// Pieces of all messages.
var (
	secondsPiece = small([]byte(`],"seconds":[`))
	endPiece     = small([]byte("]}"))
	eventEnd     = small([]byte("\n\n"))
)

// encode returns the update as JSON, behind a prefix: {"epoch":…,"first":…,"fresh":…,"inbound":…,"process":…,"columns":[…],"names":[…],
// "seconds":[[time,rows],…]}. If fresh, there are the process, which is another number for each, and the columns, which name what
// follows the number in a row.
func (n *update) encode(prefix string) pieces {
	b := fmt.Appendf([]byte(prefix), `{"epoch":%d,"first":%d,"fresh":%t,"inbound":%t`, n.now.epoch, n.first, n.fresh, n.inbound)
	if n.fresh {
		list, _ := json.Marshal(n.columns) // strings cannot fail
		b = fmt.Appendf(b, `,"process":%d,"columns":%s`, n.process, list)
	}
	all := append(pieces{small(append(b, `,"names":[`...))}, n.names...)
	all = append(all, secondsPiece)
	for i, e := range n.events {
		all = all.add(e.second, i == 0)
	}
	return append(all, endPiece)
}
