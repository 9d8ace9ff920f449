package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/internal/trouble"
	"github.com/windowstat/windowstat/node"
)

// snapshot holds the numbers of all resources in a range of sealed seconds: the last second, or a range that a viewer
// selected. The first viewer reads it, and all viewers select rows from it. Sealed seconds do not change, so a snapshot
// never changes after the read.
type snapshot struct {
	from, to  int64 // indexes of the first second, and of the one after the last
	recent    int64 // index of the first second that is checked for trouble
	sparkFrom int64 // index of the first second of the small charts

	once       sync.Once
	first, end int64 // Unix time of the first second, and after the last; 0 if the last second is not exported
	rows       []row // in ascending order of their numbers
	running    []runningCalls
	alarm      alarm    // of the last second
	details    sync.Map // *collector.Resource to a function that returns its details; of the last second
	orders     sync.Map // sort column to a function that returns all rows in this order
}

const (
	maxBars = 60 // bars of a small chart
)

// entry is a resource with its number. Numbers ascend in the order of creation and are never reused.
type entry struct {
	*collector.Resource
	lowerName string // the name in lower case, for searches
	number    int64
	usual     atomic.Pointer[trouble.Usual] // see [feed.readUsual]; nil before the first read
	usualDue  int64                         // index of the second when the next read of usual is due
	kept      int                           // reads that trouble has prevented
	troubled  atomic.Bool                   // whether the resource was in trouble in the last second
}

// row holds the numbers of a resource in the seconds of a snapshot.
type row struct {
	*entry
	sum      node.MetricNode // sums, but InFlightTime is the average over the seconds that have a record
	p99      time.Duration
	troubles []trouble.Trouble // the worst first
	rank     int64             // position in the order of trouble; the highest is the worst, 0 is none
}

// newSnapshot creates the snapshot of the seconds with indexes from up to to. A range shows the trouble and the passes
// of its own seconds. For a single second, such as the last one, trouble is found in the ten seconds that end with it,
// and the small charts show the minute that ends with it.
func newSnapshot(from, to int64) *snapshot {
	if from == to-1 {
		return &snapshot{from: from, to: to, recent: to - trouble.Window, sparkFrom: to - minute}
	}
	return &snapshot{from: from, to: to, recent: from, sparkFrom: from}
}

// read reads the seconds of all resources, once. It reports whether this call did the work. Concurrent calls wait until
// the work is done.
func (s *snapshot) read(f *feed) (did bool) {
	s.once.Do(func() {
		did = true
		entries := f.currentEntries()
		line := f.stats.Timeline()
		first, _ := line.WallTime(s.from)
		last, ok := line.WallTime(s.to - 1)
		if !ok {
			return
		}
		s.first, s.end = min(first.Unix(), last.Unix()), last.Unix()+1
		s.running = f.groupRunning(f.stats.Oldest(maxRunning))
		s.rows = make([]row, 0, len(entries))
		var r rowReader
		for _, e := range entries {
			if x, ok := r.read(s, e, first); ok {
				s.rows = append(s.rows, x)
			}
		}
		s.rank(f)
	})
	return did
}

// rowReader reads rows. Its buffers are reused from row to row.
type rowReader struct {
	list     []node.MetricNode
	seconds  []trouble.Second
	h        node.Histogram
	searched int // resources whose oldest call was searched
}

// read reads the row of a resource. It reports false if the resource has no records since the time first, where the
// seconds of the snapshot begin.
func (r *rowReader) read(s *snapshot, e *entry, first time.Time) (x row, ok bool) {
	x = row{entry: e, p99: noDuration}
	v := e.View().Node()
	r.list = v.AppendSeconds(r.list[:0], s.recent, s.to)
	records := int64(0)
	for i := range r.list {
		m := &r.list[i]
		if m.Start.Before(first) {
			continue
		}
		records++
		x.sum.Counts = x.sum.Counts.Add(m.Counts)
		x.sum.InFlightTime += m.InFlightTime
	}
	if records == 0 {
		return x, false
	}
	r.find(s, &x)
	x.sum.InFlightTime /= time.Duration(records)
	if x.sum.Complete > 0 && v.Histogram(s.from, s.to, &r.h) && r.h.Count() > 0 {
		x.p99 = r.h.Quantile(0.99)
	}
	return x, true
}

// row returns the row with the given number, or nil.
func (s *snapshot) row(number int64) *row {
	byNumber := func(x row, n int64) int { return cmp.Compare(x.number, n) }
	i, ok := slices.BinarySearchFunc(s.rows, number, byNumber)
	if !ok {
		return nil
	}
	return &s.rows[i]
}

// The table can be sorted by a column or by one of these: by name from A to Z, by the passes of the busiest second, or
// by trouble: package trouble ranks the resources in trouble, and the others follow by their passes.
const (
	byName    = "name"
	byPeak    = "peak"
	byTrouble = "trouble"
)

// sorted returns the rows in the given order. Columns sort in descending order. The first caller computes an order;
// concurrent callers wait for it.
func (s *snapshot) sorted(sortBy string, c *columns) []*row {
	once, _ := s.orders.LoadOrStore(sortBy, sync.OnceValue(func() []*row { return s.sort(sortBy, c) }))
	return once.(func() []*row)()
}

// sort computes an order. It computes the keys of each row once, because a sort of ten thousand rows compares each row
// about fifteen times.
func (s *snapshot) sort(sortBy string, c *columns) []*row {
	type item struct {
		*row
		keys [2]int64
	}
	items := make([]item, len(s.rows))
	for i := range s.rows {
		items[i] = item{&s.rows[i], s.sortKeys(&s.rows[i], sortBy, c)}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(
			slices.Compare(b.keys[:], a.keys[:]),
			strings.Compare(a.lowerName, b.lowerName),
			cmp.Compare(a.number, b.number),
		)
	})
	rows := make([]*row, len(items))
	for i := range items {
		rows[i] = items[i].row
	}
	return rows
}

// sortKeys returns the keys of a row in descending order of importance. Rows with equal keys are sorted by name.
func (s *snapshot) sortKeys(x *row, sortBy string, c *columns) [2]int64 {
	switch sortBy {
	case byName:
		return [2]int64{}
	case byPeak:
		return [2]int64{slices.Max(s.sparkline(x.entry))}
	case byTrouble:
		return [2]int64{x.rank, x.sum.Pass}
	case rtP99:
		return [2]int64{int64(x.p99)}
	case rtAvg:
		if x.sum.Complete == 0 {
			return [2]int64{int64(noDuration)}
		}
		return [2]int64{int64(x.sum.AvgRT())}
	}
	return [2]int64{*c.list[slices.Index(c.names, sortBy)].At(&x.sum)}
}

// sparkline returns the passes per second of a small chart. If the chart would have more than maxBars bars, it groups
// consecutive seconds and returns the maximum of each group.
func (s *snapshot) sparkline(e *entry) []int64 {
	list := e.View().Node().AppendSeconds(nil, s.sparkFrom, s.to)
	group := (int(s.to-s.sparkFrom) + maxBars - 1) / maxBars
	bars := make([]int64, 0, maxBars)
	for seconds := range slices.Chunk(list, group) {
		highest := int64(0)
		for i := range seconds {
			highest = max(highest, seconds[i].Pass)
		}
		bars = append(bars, highest)
	}
	if len(bars) == 0 { // the resource was retired concurrently
		bars = append(bars, 0)
	}
	return bars
}
