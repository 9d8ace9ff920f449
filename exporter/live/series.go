package live

import (
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// series holds the last seconds of the total for all viewers, because reading them takes long if there are many
// resources. It starts with the current second when the first viewer arrives, and grows at both ends:
//
//	begin                                       next
//	  |  <---- readOlder          readUntil ---->  |
//	  |  for a viewer that        each second      |
//	  |  wants more history                        |
type series struct {
	feed    *feed
	view    collector.View
	inbound bool // view counts inbound calls; otherwise all outermost calls, the background

	readMu  sync.Mutex // held while older seconds are read
	mu      sync.Mutex // guards the fields below
	begin   int64      // index of the first second that was read
	next    int64      // index of the second after the last one
	seconds [][]int64  // ascending, each the Unix time and the columns; elements are never modified
}

const (
	keptSeconds = 600 // history of the total, and of a resource, that a viewer can receive
	minute      = 60
)

// readUntil appends the seconds before index open. A series that no viewer has used for a minute restarts with the last
// second.
func (s *series) readUntil(open int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open > s.next+minute {
		s.begin, s.next, s.seconds = open-1, open-1, nil
	}
	if s.next < open {
		s.seconds = append(s.seconds, s.feed.readSeconds(s.view, s.next, open)...)
		s.next = open
	}
	if n := len(s.seconds) - keptSeconds; n > 0 {
		s.seconds = slices.Delete(s.seconds, 0, n)
	}
	s.begin = max(s.begin, s.next-keptSeconds)
}

// readOlder reads seconds before the first one, for a viewer that wants the last wanted seconds. It reports whether it
// added any. With ten thousand resources the read takes long, so s.mu is not held: viewers need it for the last second.
func (s *series) readOlder(wanted int64) bool {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	s.mu.Lock()
	begin, from := s.begin, s.next-wanted
	s.mu.Unlock()
	if begin <= from {
		return false
	}
	list := s.feed.readSeconds(s.view, from, begin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin != begin {
		return false // the series has restarted or dropped seconds
	}
	s.begin, s.seconds = from, append(list, s.seconds...)
	return len(list) > 0
}

// missing returns the seconds before the Unix time end that a viewer with the seconds from first to last lacks. It also
// returns the first and the last second that the viewer then has.
func (s *series) missing(first, last, end int64) (list [][]int64, newFirst, newLast int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seconds) > 0 && last < s.seconds[0][0]-1 {
		first, last = 0, 0 // a gap follows the viewer's seconds; count only those after the gap
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

// readSeconds reads the seconds of a view with the indexes from, from+1, ... to-1. A second in the result is its Unix
// time, followed by its columns. A second has no p99 if its histogram is no longer kept.
func (f *feed) readSeconds(v collector.View, from, to int64) [][]int64 {
	all, view, line := [][]int64{}, v.Node(), f.stats.Timeline()
	list := view.AppendSeconds(nil, from, to)
	first := max(from, line.At(line.Now()).Index-int64(f.stats.Histograms()/time.Second))
	hs := make([]node.Histogram, max(0, to-first))
	keptFrom := view.Histograms(first, hs)
	for i := from; i < to && len(list) > 0; i++ {
		name, ok := line.WallTime(i)
		if !ok || !name.Equal(list[0].Start) {
			continue
		}
		p99 := noDuration
		if i >= max(first, keptFrom) && hs[i-first].Count() > 0 {
			p99 = hs[i-first].Quantile(0.99)
		}
		row := append(make([]int64, 0, 1+len(f.columns.names)), name.Unix())
		all = append(all, f.columns.appendValues(row, &list[0], p99))
		list = list[1:]
	}
	return all
}
