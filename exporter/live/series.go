package live

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// series is the last seconds of the total, or of a resource, each encoded and compressed once for all viewers. It goes on from
// when it is first asked for. What was before is read by who fills it, without a lock, and comes to the viewers later.
type series struct {
	line    *leap.Timeline
	columns *columns
	view    collector.View
	back    int64 // how many seconds are read of what was before
	used    int64 // the feed's: when it was last asked for

	mu     sync.Mutex // guards what follows
	begin  int64      // index of the first event
	next   int64      // index of the second after the last event
	events []event
	before before
	filled chan struct{} // closed when the past is there; nil as long as nothing is
	filler bool          // somebody fills it
}

// event is an encoded second.
type event struct {
	unix int64
	piece
}

// before is the seconds before the first event, from first to last; none if there is no piece.
type before struct {
	first, last int64
	piece
}

const (
	keptSeconds   = 600 // that a viewer may have of the total, or of a resource
	backTotal     = 180 // of them before the first viewer came
	backResource  = keptSeconds
	withQuantiles = 60 // as histograms are kept by default
	mostCatchedUp = 10 // seconds without a viewer, after which a series begins anew
)

// until has the series go on until a second.
func (s *series) until(open int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filled == nil || open > s.next+mostCatchedUp {
		s.begin, s.next, s.events, s.before, s.filled, s.filler = open-1, open-1, nil, before{}, make(chan struct{}), false
	}
	if s.next < open {
		s.read(s.next, open, func(unix int64, b []byte) { s.events = append(s.events, event{unix, pieceOf(slices.Clone(b))}) })
		s.next = open
	}
	if n := len(s.events) - keptSeconds; n > 0 {
		s.events = slices.Delete(s.events, 0, n)
	}
	if n := len(s.events); n > 0 && s.events[n-1].unix > s.before.last+keptSeconds {
		s.before = before{}
	}
}

// fill reads what was before the first event, unless somebody does. The channel is closed when it is there, or nil if it is and
// a viewer has it whose first second this is.
func (s *series) fill(first int64) (filled <-chan struct{}) {
	s.mu.Lock()
	begin, done, there := s.begin, s.filled, s.filler
	s.filler = true
	s.mu.Unlock()
	if !there {
		s.readBefore(begin, done)
	}
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.before.zipped == nil || s.before.first >= first {
			return nil
		}
	default:
	}
	return done
}

// readBefore reads what was before a second, and closes the channel of those who wait for it.
func (s *series) readBefore(begin int64, done chan struct{}) {
	defer close(done)
	var x before
	list := []byte{}
	s.read(begin-s.back, begin, func(unix int64, b []byte) {
		if x.last = unix; x.first == 0 {
			x.first = unix
		} else {
			list = append(list, ',')
		}
		list = append(list, b...)
	})
	if x.first == 0 {
		return
	}
	x.piece = pieceOf(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filled == done { // or it began anew
		s.before = x
	}
}

// read encodes the seconds from from to before to: [time,columns…].
func (s *series) read(from, to int64, emit func(unix int64, b []byte)) {
	view, first := s.view.Node(), max(from, to-withQuantiles)
	list, hs := view.AppendSeconds(nil, from, to), make([]node.Histogram, to-first)
	known := view.Histograms(first, hs)
	var b []byte
	for i := from; i < to && len(list) > 0; i++ {
		name, ok := s.line.Name(i)
		if !ok || !name.Equal(list[0].Start) {
			continue
		}
		p99 := none
		if i >= known && hs[i-first].Count() > 0 {
			p99 = hs[i-first].Quantile(0.99)
		}
		b = strconv.AppendInt(append(b[:0], '['), name.Unix(), 10)
		b = append(s.columns.append(b, &list[0], p99), ']')
		emit(name.Unix(), b)
		list = list[1:]
	}
}

// after returns the seconds until a time that a viewer lacks who has those from first to last, and what it has then.
func (s *series) after(first, last, until int64) (list pieces, newFirst, newLast int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) > 0 && last < s.events[0].unix-1 { // there is a gap, and only what is after it counts
		first, last = 0, 0
	}
	if x := s.before; x.zipped != nil && (first == 0 || first > x.first) {
		list, first, last = list.add(x.piece, true), x.first, max(last, x.last)
	}
	i, _ := slices.BinarySearchFunc(s.events, last+1, func(e event, unix int64) int { return cmp.Compare(e.unix, unix) })
	for _, e := range s.events[i:] {
		if e.unix > until {
			break
		}
		if list, last = list.add(e.piece, len(list) == 0), e.unix; first == 0 {
			first = e.unix
		}
	}
	return list, first, last
}
