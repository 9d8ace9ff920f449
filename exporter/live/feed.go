package live

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// feed is what is read of the collector once for all viewers: the present second of all resources, ranges that somebody chose,
// and the past of the total. The first viewer who needs a part reads it, and others who need the same wait for that, and for nothing
// else. A single resource costs so little that each viewer reads the one that it has open.
type feed struct {
	stats   *collector.Collector
	rows    int // on a page of the table
	columns *columns
	started int64 // differs between processes
	process process

	mu     sync.Mutex // guards what follows; nothing is read under it
	now    *snapshot
	ranges []*snapshot // the latest last
	total  *series

	naming   sync.Mutex                     // guards what follows
	entries  map[*collector.Resource]*entry // of the resources that there are
	numbered int64                          // the last number of an entry
}

// keptRanges is how many ranges are kept. Somebody who sorts, searches or turns a page asks for the same seconds again, as does everybody
// who opens a link to them; reading ten minutes of ten thousand resources takes half a second.
const keptRanges = 8

// newFeed makes a feed for pages of so many rows. It reads nothing until somebody asks.
func newFeed(c *collector.Collector, rows int) *feed {
	f := &feed{
		stats: c, rows: rows, columns: newColumns(c.DurationsUnknown()),
		started: time.Now().UnixMilli(), process: process{root: machine},
	}
	f.total = &series{feed: f, view: c.Tree().View()}
	return f
}

// present returns the snapshot of the last sealed second, and the series of the total with it.
func (f *feed) present() (s *snapshot, total *series) {
	line := f.stats.Timeline()
	now := line.Now()
	open := line.At(now).Index
	f.mu.Lock()
	if f.now == nil || f.now.to < open {
		f.now = newSnapshot(open-1, open)
		if v := f.stats.Inbound(); !f.total.inbound && v.Node().Used() {
			f.total = &series{feed: f, view: v, inbound: true}
		}
	}
	s, total = f.now, f.total
	f.mu.Unlock()
	// Reading is done without the lock: the first viewer of a second reads it for all, and the others wait for the snapshot alone.
	s.read(f)
	total.until(s.to)
	if s.end > 0 {
		f.process.until(s.to, s.end-1, now)
	}
	return s, total
}

// ranged returns the snapshot of the seconds that a viewer chose, an empty one if they are not known. The last ones are kept.
func (f *feed) ranged(v *viewer, now *snapshot) *snapshot {
	line := f.stats.Timeline()
	from, to := line.IndexAtOrAfter(time.Unix(v.query.first, 0)), min(line.IndexAtOrAfter(time.Unix(v.end, 0)), now.to)
	unknown := &snapshot{first: v.query.first, end: v.end}
	if from = max(from, to-keptSeconds); from >= to {
		return unknown
	}
	f.mu.Lock()
	i := slices.IndexFunc(f.ranges, func(x *snapshot) bool { return x.from == from && x.to == to })
	if i < 0 {
		f.ranges = append(f.ranges, newSnapshot(from, to))
		f.ranges = f.ranges[max(0, len(f.ranges)-keptRanges):]
		i = len(f.ranges) - 1
	}
	s := f.ranges[i]
	f.mu.Unlock()
	if began := time.Now(); s.read(f) {
		v.spent += time.Since(began)
	}
	if s.end == 0 {
		return unknown
	}
	return s
}

// known returns the entries of the resources that there are, by number: the oldest resources come first, and new ones get the next
// numbers.
func (f *feed) known() []*entry {
	m := f.stats.Seal()
	f.naming.Lock()
	defer f.naming.Unlock()
	// A resource that was retired and is back is another one, with a number of its own: a row never changes what it stands for.
	old, list := f.entries, make([]*entry, len(m.Resources))
	f.entries = make(map[*collector.Resource]*entry, len(list)) // without those that were retired
	for i, r := range m.Resources {
		e := old[r]
		if e == nil {
			f.numbered++
			e = &entry{Resource: r, lower: strings.ToLower(r.Name()), number: f.numbered}
		}
		f.entries[r], list[i] = e, e
	}
	f.readUsual(list, m.Open)
	return list
}
