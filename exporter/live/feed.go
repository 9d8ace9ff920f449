package live

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// feed reads the data that all viewers share from the Collector: the current second of all resources, selected time
// ranges, and the history of the total. The first viewer that needs a part reads it; other viewers wait only for that
// read. A single resource is cheap, so each viewer reads its open resource itself.
//
//	Collector ──┬── snapshot      last second, all resources ────┐
//	            ├── snapshot      selected range, all resources ─┤
//	            ├── series        history of the total ──────────┼── message ── stream or poll ── viewer
//	            └── readSeconds   open resource, readDetails ────┤
//	machine ─────── processMeter  the process ───────────────────┘
//
// The process is also measured without viewers, see [Page.Run].
type feed struct {
	stats     *collector.Collector
	pageRows  int // rows on a page of the table
	columns   *columns
	startTime int64 // milliseconds of Unix time; identifies the process
	process   processMeter

	mu     sync.Mutex  // guards the fields below; no read of the Collector's seconds happens while it is held
	last   *snapshot   // the last sealed second
	ranges []*snapshot // the latest last
	total  *series

	entriesMu  sync.Mutex                     // guards the fields below
	entries    map[*collector.Resource]*entry // of the current resources
	lastNumber int64                          // the last number that an entry got
}

// maxRanges is the number of ranges that are kept. A viewer that sorts, searches or turns a page requests the same
// range again, as does every viewer that opens a link to the range. Reading ten minutes of ten thousand resources takes
// half a second.
const maxRanges = 8

// newFeed creates a feed for table pages of pageRows rows. It reads nothing until a viewer needs it.
func newFeed(c *collector.Collector, pageRows int) *feed {
	f := &feed{
		stats: c, pageRows: pageRows, columns: newColumns(c.DurationsUnknown()),
		startTime: time.Now().UnixMilli(),
		process:   processMeter{root: machineRoot, statistics: func() int64 { return c.Memory().Sum() }},
	}
	f.total = &series{feed: f, view: c.Tree().View()}
	return f
}

// current returns the snapshot of the last sealed second, and the series of the total up to that second.
func (f *feed) current() (s *snapshot, total *series) {
	line := f.stats.Timeline()
	open := line.At(line.Now()).Index
	f.mu.Lock()
	if f.last == nil || f.last.to < open {
		f.last = newSnapshot(open-1, open)
		if v := f.stats.Inbound(); !f.total.inbound && v.Node().Used() {
			f.total = &series{feed: f, view: v, inbound: true}
		}
	}
	s, total = f.last, f.total
	f.mu.Unlock()
	// The reads happen without f.mu. The first viewer of a second reads it for all; the others wait for this snapshot,
	// and for nothing else.
	s.read(f)
	total.readUntil(s.to)
	f.measureProcess()
	return s, total
}

// measureProcess measures the process at the end of the last sealed second, unless that has happened already.
func (f *feed) measureProcess() {
	line := f.stats.Timeline()
	now := line.Now()
	open := line.At(now).Index
	if last, ok := line.WallTime(open - 1); ok {
		f.process.measureSecond(open, last.Unix(), now)
	}
}

// rangeSnapshot returns the snapshot of the range that the viewer selected, or an empty snapshot if its seconds are no
// longer kept. It keeps the last snapshots for other requests.
func (f *feed) rangeSnapshot(v *viewer, last *snapshot) *snapshot {
	line := f.stats.Timeline()
	from := line.IndexAtOrAfter(time.Unix(v.rangeFirst, 0))
	to := min(line.IndexAtOrAfter(time.Unix(v.rangeEnd, 0)), last.to)
	empty := &snapshot{first: v.rangeFirst, end: v.rangeEnd}
	if from = max(from, to-keptSeconds); from >= to {
		return empty
	}
	f.mu.Lock()
	i := slices.IndexFunc(f.ranges, func(x *snapshot) bool { return x.from == from && x.to == to })
	if i < 0 {
		f.ranges = append(f.ranges, newSnapshot(from, to))
		f.ranges = f.ranges[max(0, len(f.ranges)-maxRanges):]
		i = len(f.ranges) - 1
	}
	s := f.ranges[i]
	f.mu.Unlock()
	if began := time.Now(); s.read(f) {
		v.spent += time.Since(began)
	}
	if s.end == 0 {
		return empty
	}
	return s
}

// currentEntries seals the last second and returns the entries of all current resources in ascending order of their
// numbers. New resources get the next numbers.
func (f *feed) currentEntries() []*entry {
	m := f.stats.Seal()
	f.entriesMu.Lock()
	defer f.entriesMu.Unlock()
	// A name that was retired and used again is a new resource and gets a new number, so the rows of a viewer that have
	// the same number always show the same resource.
	old, list := f.entries, make([]*entry, len(m.Resources))
	f.entries = make(map[*collector.Resource]*entry, len(list)) // drops the retired resources
	for i, r := range m.Resources {
		e := old[r]
		if e == nil {
			f.lastNumber++
			e = &entry{Resource: r, lowerName: strings.ToLower(r.Name()), number: f.lastNumber}
		}
		f.entries[r], list[i] = e, e
	}
	f.readUsual(list, m.Open)
	return list
}
