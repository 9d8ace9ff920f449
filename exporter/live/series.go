package live

import (
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// series is the last seconds of the total, or of a resource, shared by all viewers. It begins with the present when somebody
// first asks for it, goes on with each second, and reads what was before when somebody wants it: see [series.older].
type series struct {
	stats   *collector.Collector
	columns *columns
	view    collector.View

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
		s.seconds = append(s.seconds, s.read(s.next, open)...)
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
	list := s.read(from, begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin != begin {
		return false // it began anew
	}
	s.begin, s.seconds = from, append(list, s.seconds...)
	return len(list) > 0
}

// read reads the seconds with indexes from from to before to. Those whose histograms are not kept any more have no p99.
func (s *series) read(from, to int64) (all [][]int64) {
	view, line := s.view.Node(), s.stats.Timeline()
	list := view.AppendSeconds(nil, from, to)
	first := max(from, line.At(line.Now()).Index-int64(s.stats.Histograms()/time.Second))
	hs := make([]node.Histogram, max(0, to-first))
	known := view.Histograms(first, hs)
	for i := from; i < to && len(list) > 0; i++ {
		name, ok := line.Name(i)
		if !ok || !name.Equal(list[0].Start) {
			continue
		}
		p99 := none
		if i >= max(first, known) && hs[i-first].Count() > 0 {
			p99 = hs[i-first].Quantile(0.99)
		}
		row := append(make([]int64, 0, 1+len(s.columns.names)), name.Unix())
		all = append(all, s.columns.append(row, &list[0], p99))
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
