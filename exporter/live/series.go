package live

import (
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// series is the last seconds of the total, shared by all viewers, because reading them takes long where there are many resources. It
// begins with the present when somebody first asks for it, goes on with each second, and reads what was before when somebody wants it:
// see [series.older].
type series struct {
	feed    *feed
	view    collector.View
	inbound bool // it is of inbound calls; while there are none, of the background: all outermost calls

	reading sync.Mutex // held while what was before is read
	mu      sync.Mutex // guards what follows
	begin   int64      // index of the first second that was read
	next    int64      // index of the second after the last one
	seconds [][]int64  // ascending, each the Unix time and the columns; nobody changes one
}

const (
	keptSeconds = 600 // that a viewer may have of the total, or of a resource
	minute      = 60
)

// until has the series go on to the second before open. One that nobody has asked for in a minute begins anew.
func (s *series) until(open int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open > s.next+minute {
		s.begin, s.next, s.seconds = open-1, open-1, nil
	}
	if s.next < open {
		s.seconds = append(s.seconds, s.feed.seconds(s.view, s.next, open)...)
		s.next = open
	}
	if n := len(s.seconds) - keptSeconds; n > 0 {
		s.seconds = slices.Delete(s.seconds, 0, n)
	}
	s.begin = max(s.begin, s.next-keptSeconds)
}

// older reads what is before the seconds that there are, for a viewer that wants so many, and reports whether there was any. The lock
// that viewers need for the present is not held meanwhile, because of ten thousand resources that takes long.
func (s *series) older(wanted int64) bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	begin, from := s.begin, s.next-wanted
	s.mu.Unlock()
	if begin <= from {
		return false
	}
	list := s.feed.seconds(s.view, from, begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin != begin {
		return false // it began anew
	}
	s.begin, s.seconds = from, append(list, s.seconds...)
	return len(list) > 0
}

// seconds reads the seconds of a view with indexes from from to before to, each as its Unix time and its columns. Those whose
// histograms are not kept any more have no p99.
func (f *feed) seconds(v collector.View, from, to int64) [][]int64 {
	all, view, line := [][]int64{}, v.Node(), f.stats.Timeline()
	list := view.AppendSeconds(nil, from, to)
	first := max(from, line.At(line.Now()).Index-int64(f.stats.Histograms()/time.Second))
	hs := make([]node.Histogram, max(0, to-first))
	known := view.Histograms(first, hs)
	for i := from; i < to && len(list) > 0; i++ {
		name, ok := line.WallTime(i)
		if !ok || !name.Equal(list[0].Start) {
			continue
		}
		p99 := none
		if i >= max(first, known) && hs[i-first].Count() > 0 {
			p99 = hs[i-first].Quantile(0.99)
		}
		row := append(make([]int64, 0, 1+len(f.columns.names)), name.Unix())
		all = append(all, f.columns.append(row, &list[0], p99))
		list = list[1:]
	}
	return all
}

// after returns the seconds before end that a viewer lacks who has those from first to last, and what it has then; all are
// Unix time.
func (s *series) after(first, last, end int64) (list [][]int64, newFirst, newLast int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seconds) > 0 && last < s.seconds[0][0]-1 { // there is a gap, and only what is after it counts
		first, last = 0, 0
	}
	list = [][]int64{}
	for _, x := range s.seconds {
		if at := x[0]; at < end && (at > last || at < first) {
			list = append(list, x)
		}
	}
	if len(list) > 0 {
		if first == 0 {
			first = list[0][0]
		}
		first, last = min(first, list[0][0]), max(last, list[len(list)-1][0])
	}
	return list, first, last
}

// columns are the numbers of a second: columns of its record, then what is derived from its response times. Their names are
// sent once, and the script finds by them what it shows.
type columns struct {
	list    []node.Column
	names   []string
	untimed bool // response times are not known
}

// The columns that are derived from response times.
const (
	rtAvg = "rt_avg"
	rtP99 = "rt_p99"
)

// inRow are the columns that a row of the table has beside those of a second: what went wrong lately, and the p99 that is usual.
var inRow = []string{"exception_lately", "block_lately", "rt_usual"}

// newColumns are the columns that the page shows: the main counts, and how many calls are in flight on average.
func newColumns(untimed bool) *columns {
	c := &columns{untimed: untimed}
	for _, x := range node.Columns() {
		if x.Kind == node.Count && !x.Detail || x.Kind == node.CallTime {
			c.list, c.names = append(c.list, x), append(c.names, x.Name)
		}
	}
	c.names = append(c.names, rtAvg, rtP99)
	return c
}

// append appends the numbers of a second. Times are in microseconds, that of all calls in flight together as well, and -1 where
// there is none.
func (c *columns) append(to []int64, m *node.MetricNode, p99 time.Duration) []int64 {
	for i := range c.list {
		x := &c.list[i]
		v := *x.At(m)
		if x.Kind == node.CallTime {
			v = c.time(time.Duration(v))
		}
		to = append(to, v)
	}
	avg := none
	if m.Complete > 0 {
		avg = m.AvgRT()
	}
	return append(to, c.time(avg), c.time(p99))
}

// time is a time in microseconds.
func (c *columns) time(v time.Duration) int64 {
	if c.untimed {
		v = none
	}
	return v.Microseconds()
}

// none is a time that is not known.
const none = -time.Microsecond
