package metriclog

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// pendingSecond holds the lines of one second before they are written: a row for each resource with events or calls in
// flight, or for every resource with ZeroRows, and then the total of inbound calls. A second has all its rows or none.
//
//	readSeconds finds                               lines            counted as
//	-----------------                               -----            ----------
//	a record of each resource                       rows and total   written
//	only idle records, without ZeroRows             none             written
//	a resource without a record                     none             lost
//	no wall-clock name, as the clock was set back   none             not at all; the timeline counts it
type pendingSecond struct {
	start   time.Time // in the log's time zone
	hasName bool      // false if the timeline counted the second without a wall-clock name
	head    []byte    // first two fields of all lines
	lines   []byte
	rows    int64
	lost    bool // a resource has no record, or the log has a later second
}

// drop discards the lines. The second is lost for good.
func (s *pendingSecond) drop() { s.lost, s.rows, s.lines = true, 0, s.lines[:0] }

// Limits for reading several seconds together. A delayed Writer looks up each resource once for all of them. It reads
// at most maxSeconds seconds and about maxRows rows. This bounds the memory, and how long a resource is locked.
const (
	maxSeconds = 64
	maxRows    = 1 << 15
	rowSize    = 80 // bytes of a typical row
)

// readSeconds builds the lines of the next seconds, of one at least.
func (w *Writer) readSeconds(m collector.Boundary) []pendingSecond {
	perSecond := len(m.Resources) + 1 // with the total
	n := int(min(m.Open-w.next, maxSeconds, int64(max(maxRows/perSecond, 1))))
	if w.failing {
		n = 1 // writing may fail again
	}
	for len(w.seconds) < n {
		// Several seconds get their memory in one allocation each. A single one grows to its size and keeps it.
		w.seconds = append(w.seconds, pendingSecond{lines: make([]byte, 0, min(n-1, 1)*rowSize*perSecond)})
	}
	seconds := w.seconds[:n]
	for i := range seconds {
		s := &seconds[i]
		name, ok := w.stats.Timeline().WallTime(w.next + int64(i))
		s.start, s.hasName, s.rows, s.lost = name.In(w.files.Location), ok, 0, false
		s.lines = s.lines[:0]
		s.head = appendHead(s.head[:0], s.start)
	}
	for _, r := range m.Resources {
		w.appendRows(seconds, r.Name(), r, r.View().Node())
	}
	w.appendRows(seconds, collector.InboundTotal, nil, w.stats.Inbound().Node())
	return seconds
}

// appendRows appends the lines of a resource to the seconds. If r is nil, they are the totals of inbound calls, which
// must come last: a total marks its second as complete.
func (w *Writer) appendRows(seconds []pendingSecond, name string, r *collector.Resource, v *node.View) {
	w.records = v.AppendSeconds(w.records[:0], w.next, w.next+int64(len(seconds)))
	w.name = appendName(w.name[:0], name)
	records := w.records
	for i := range seconds {
		s, index := &seconds[i], w.next+int64(i)
		if !s.hasName || index < v.Since() { // the resource is newer than the second
			continue
		}
		if len(records) == 0 || !records[0].Start.Equal(s.start) {
			s.drop() // the history no longer has the record
			continue
		}
		m := &records[0]
		records = records[1:]
		// Idle records have no row. A total has one if its second has other rows.
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

// releaseMemory frees the memory of all seconds but one.
func (w *Writer) releaseMemory() {
	if len(w.seconds) > 1 {
		w.seconds, w.files.bufferedRows = []pendingSecond{w.seconds[0]}, nil
	}
}
