package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// snapshot is what all resources did in some sealed seconds: the last one, or a range that somebody chose. It is read once, and
// viewers choose rows from it. As sealed seconds do not change, neither does it.
type snapshot struct {
	from, to int64 // indexes of the first second, and of the one after the last
	lately   int64 // index from which on trouble counts
	spark    int64 // index of the first second of the small charts

	once       sync.Once
	first, end int64 // Unix time of the first second, and after the last; 0 if the last must not be handed out
	rows       []row // by number
	running    []running
	details    sync.Map // functions that describe resources that are open, by *collector.Resource; of the present
	orders     sync.Map // functions that return all rows in an order, by what they are sorted by
}

const (
	troubled = 10 // seconds in which trouble of the present counts
	bars     = 60 // of a small chart at most
)

// entry is a resource with its number, which stands for it as long as it lives and is greater than those before it.
type entry struct {
	*collector.Resource
	lower  string // the name, for searches
	number int64
	usual  atomic.Int64 // the p99 that is usual, in nanoseconds; 0 if it is not known
	due    int64        // index of the second in which that is read again
}

// row is a resource in the seconds of a snapshot.
type row struct {
	*entry
	m               node.MetricNode // sums, and the average of the calls in flight over the seconds that are known
	p99             time.Duration
	failed, refused int64 // lately
}

// newSnapshot makes the snapshot of some seconds, in which everything counts that was in them. Of a single one, such as the last, what is
// wrong with a resource counts for ten seconds, or it would flicker, and the small charts have the minute before.
func newSnapshot(from, to int64) *snapshot {
	if from == to-1 {
		return &snapshot{from: from, to: to, lately: to - troubled, spark: to - minute}
	}
	return &snapshot{from: from, to: to, lately: from, spark: from}
}

// read reads the seconds of each resource, and reports whether it did: others wait for the one that does.
func (s *snapshot) read(f *feed) (did bool) {
	s.once.Do(func() {
		did = true
		entries := f.known()
		line := f.stats.Timeline()
		first, _ := line.WallTime(s.from)
		last, ok := line.WallTime(s.to - 1)
		if !ok {
			return
		}
		s.first, s.end = min(first.Unix(), last.Unix()), last.Unix()+1
		s.running = f.runningOf(f.stats.Oldest(mostRunning))
		var list []node.MetricNode
		var h node.Histogram
		s.rows = make([]row, 0, len(entries))
		for _, e := range entries {
			x := row{entry: e, p99: none}
			v := e.View().Node()
			list = v.AppendSeconds(list[:0], s.lately, s.to)
			there := int64(0)
			for i := range list {
				each := &list[i]
				x.failed, x.refused = x.failed+each.Exception, x.refused+each.Block
				if each.Start.Before(first) {
					continue
				}
				there++
				x.m.Counts = x.m.Counts.Add(each.Counts)
				x.m.InFlightTime += each.InFlightTime
			}
			if there == 0 {
				continue
			}
			x.m.InFlightTime /= time.Duration(there)
			if x.m.Complete > 0 && v.Histogram(s.from, s.to, &h) && h.Count() > 0 {
				x.p99 = h.Quantile(0.99)
			}
			s.rows = append(s.rows, x)
		}
	})
	return did
}

// row finds the row of a resource by its number, nil if there is none.
func (s *snapshot) row(number int64) *row {
	i, ok := slices.BinarySearchFunc(s.rows, number, func(x row, n int64) int { return cmp.Compare(x.number, n) })
	if !ok {
		return nil
	}
	return &s.rows[i]
}

// sorted is the rows by a column, the greatest first; by name from A. Each order is made once, and others that need the same wait.
func (s *snapshot) sorted(by string, c *columns) []*row {
	once, _ := s.orders.LoadOrStore(by, sync.OnceValue(func() []*row { return s.sort(by, c) }))
	return once.(func() []*row)()
}

// sort makes an order. The keys of a row are computed once, as there are some fifteen comparisons of each of ten thousand rows.
func (s *snapshot) sort(by string, c *columns) []*row {
	type item struct {
		*row
		keys [4]int64
	}
	items := make([]item, len(s.rows))
	for i := range s.rows {
		items[i] = item{&s.rows[i], s.keys(&s.rows[i], by, c)}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(slices.Compare(b.keys[:], a.keys[:]), strings.Compare(a.lower, b.lower), cmp.Compare(a.number, b.number))
	})
	rows := make([]*row, len(items))
	for i := range items {
		rows[i] = items[i].row
	}
	return rows
}

// What the table is sorted by, beside the columns: the name, the busiest second, and trouble: calls that failed, calls that were
// refused, how many times the p99 is what is usual, and where there is none of that, passes.
const (
	byName    = "name"
	byPeak    = "peak"
	byTrouble = "trouble"
)

// keys are what a row is sorted by.
func (s *snapshot) keys(x *row, by string, c *columns) [4]int64 {
	switch by {
	case byName:
		return [4]int64{}
	case byPeak:
		return [4]int64{slices.Max(s.past(x.entry))}
	case byTrouble:
		return [4]int64{x.failed, x.refused, x.slower(), x.m.Pass}
	case rtP99:
		return [4]int64{int64(x.p99)}
	case rtAvg:
		if x.m.Complete == 0 {
			return [4]int64{int64(none)}
		}
		return [4]int64{int64(x.m.AvgRT())}
	}
	return [4]int64{*c.list[slices.Index(c.names, by)].At(&x.m)}
}

// past is the passes of the seconds of a small chart, or if it has too many, the most of each few.
func (s *snapshot) past(e *entry) []int64 {
	list := e.View().Node().AppendSeconds(nil, s.spark, s.to)
	each := (int(s.to-s.spark) + bars - 1) / bars
	past := make([]int64, 0, bars)
	for part := range slices.Chunk(list, each) {
		most := int64(0)
		for i := range part {
			most = max(most, part[i].Pass)
		}
		past = append(past, most)
	}
	if len(past) == 0 { // its name was retired meanwhile
		past = append(past, 0)
	}
	return past
}

// What response times are usual is read from the last ten minutes, for each resource once a minute: the median of the slowest
// call of a second. Records of seconds have no p99, but that of up to a hundred calls is the slowest one.
const (
	usualReads  = 200 // resources in a second at most
	usualSample = 10  // seconds of each minute that are read
	usualLeast  = 10  // seconds with calls, or nothing is usual
)

// readUsual reads what is usual for those entries that are due.
func (f *feed) readUsual(entries []*entry, open int64) {
	var list []node.MetricNode
	var slowest []time.Duration
	left := usualReads
	for _, e := range entries {
		if e.due > open {
			continue
		}
		if left--; left < 0 {
			return
		}
		e.due = open + minute
		list = list[:0]
		for from := open - keptSeconds; from < open-minute; from += minute {
			list = e.View().Node().AppendSeconds(list, from, from+usualSample)
		}
		slowest = slowest[:0]
		for i := range list {
			if list[i].Complete > 0 {
				slowest = append(slowest, list[i].RTMax)
			}
		}
		usual := time.Duration(0)
		if len(slowest) >= usualLeast {
			slices.Sort(slowest)
			usual = slowest[len(slowest)/2]
		}
		e.usual.Store(int64(usual))
	}
}

// slower is how many times the p99 is what is usual, in tenths; 0 if that is not worth a look.
func (x *row) slower() int64 {
	usual := x.usual.Load()
	if p99 := int64(x.p99); usual > 0 && p99 >= 2*usual && p99-usual >= int64(time.Millisecond) {
		return 10 * p99 / usual
	}
	return 0
}
