package metriclog

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// second is the lines of one second: a row for each resource with events or calls in flight, or with ZeroRows for each, and the total
// of inbound calls as the last one. It has all its rows or none: one that lacks a record is lost as a whole.
type second struct {
	start time.Time // in the log's time zone
	named bool      // or else the wall clock was set back; the timeline counts these seconds
	head  []byte    // what all lines begin with
	lines []byte
	rows  int64
	lost  bool // it is not written, with none of its rows
}

// lose leaves a second out, for good.
func (s *second) lose() { s.lost, s.rows, s.lines = true, 0, s.lines[:0] }

// A Writer that is behind reads several seconds at once, so that each resource is looked for once for all of them; at most
// maxSeconds, and about maxRows rows, which bounds memory and how long a resource is locked.
const (
	maxSeconds = 64
	maxRows    = 1 << 15
	rowSize    = 80 // bytes of a row, about
)

// read makes the lines of the next seconds, of one or more.
func (w *Writer) read(m collector.Boundary) []second {
	n := int(min(m.Open-w.next, maxSeconds, int64(max(maxRows/(len(m.Resources)+1), 1))))
	if w.failing {
		n = 1 // which may fail again
	}
	for len(w.seconds) < n {
		w.seconds = append(w.seconds, second{lines: make([]byte, 0, min(n-1, 1)*rowSize*(len(m.Resources)+1))})
	}
	seconds := w.seconds[:n]
	for i := range seconds {
		s := &seconds[i]
		name, ok := w.stats.Timeline().WallTime(w.next + int64(i))
		s.start, s.named, s.rows, s.lost = name.In(w.files.Location), ok, 0, false
		s.lines = s.lines[:0]
		s.head = appendHead(s.head[:0], s.start)
	}
	for _, r := range m.Resources {
		w.add(seconds, r.Name(), r, r.View().Node())
	}
	w.add(seconds, collector.InboundTotal, nil, w.stats.Inbound().Node())
	return seconds
}

// add adds the lines of a resource; nil is the total of inbound calls, the last row of every second with rows, which marks it
// as complete.
func (w *Writer) add(seconds []second, name string, r *collector.Resource, v *node.View) {
	w.records = v.AppendSeconds(w.records[:0], w.next, w.next+int64(len(seconds)))
	w.name = appendName(w.name[:0], name)
	records := w.records
	for i := range seconds {
		s, index := &seconds[i], w.next+int64(i)
		if !s.named || index < v.Since() {
			continue
		}
		if len(records) == 0 || !records[0].Start.Equal(s.start) {
			s.lose() // a second has all its rows, or none
			continue
		}
		m := &records[0]
		records = records[1:]
		// The total marks a second with rows as complete, and is a row only of those.
		if s.lost || m.Idle() && !w.files.ZeroRows && (r != nil || s.rows == 0) {
			continue
		}
		s.rows++
		s.lines = append(append(s.lines, s.head...), w.name...)
		if r == nil {
			s.lines = appendTotal(s.lines, m, w.stats.RunID())
		} else {
			s.lines = appendNode(s.lines, m)
		}
	}
}

// forget frees the memory for all seconds but one.
func (w *Writer) forget() {
	if len(w.seconds) > 1 {
		w.seconds, w.files.rows = []second{w.seconds[0]}, nil
	}
}
