package sentinellog

import (
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/node"
)

// history holds the rows of one process in the seconds from from on, packed, by resource. It is not safe for concurrent
// use.
type history struct {
	from    int64 // Unix time; of earlier rows only the last one of each resource is known
	series  map[string]*series
	sorted  []*series // by name; nil if it must be sorted again
	present []int64   // seconds with a row, at or after from, in ascending order
	bytes   int       // approximate memory
}

// series holds the rows of one resource.
type series struct {
	name   string
	before int64 // last second with a row that is not in chunks; 0 if none
	chunks []chunk
}

// Approximate memory of a series and of a chunk without their rows.
const (
	seriesBytes = 200
	chunkBytes  = 48
)

func newHistory(from int64) *history { return &history{from: from, series: map[string]*series{}} }

// get returns the series of a resource, and creates the series if necessary.
func (h *history) get(name string) *series {
	s := h.series[name]
	if s == nil {
		name = strings.Clone(name)
		s = &series{name: name}
		h.series[name] = s
		h.sorted = nil
		h.bytes += seriesBytes + len(name)
	}
	return s
}

// maxResources is the number of resources of a process. Sentinel for Java has at most 6,000.
const maxResources = 20_000

// add adds a row. Rows of earlier seconds than from only name the resource. If there is a row of the same resource and
// second, their counts are added. add returns false if the process has too many resources.
func (h *history) add(name string, r row) bool {
	if len(h.series) >= maxResources && h.series[name] == nil {
		return false
	}
	s := h.get(name)
	if r.at < h.from {
		s.before = max(s.before, r.at)
		return true
	}
	if n := len(h.present); n == 0 || r.at > h.present[n-1] {
		h.present = append(h.present, r.at)
	} else if i, ok := slices.BinarySearch(h.present, r.at); !ok {
		h.present = slices.Insert(h.present, i, r.at)
	}
	n := len(s.chunks)
	switch {
	case n > 0 && r.at <= s.chunks[n-1].last:
		for n > 1 && r.at <= s.chunks[n-2].last {
			n--
		}
		c := &s.chunks[n-1]
		size := cap(c.data)
		c.insert(r)
		h.bytes += cap(c.data) - size
		return true
	case n == 0 || s.chunks[n-1].n >= maxChunk:
		if n > 0 { // the chunk is complete
			c := &s.chunks[n-1]
			size := cap(c.data)
			c.data = slices.Clip(append([]byte(nil), c.data...))
			h.bytes += cap(c.data) - size
		}
		s.chunks = append(s.chunks, chunk{})
		h.bytes += chunkBytes
		n++
	}
	c := &s.chunks[n-1]
	size := cap(c.data)
	c.append(&r)
	h.bytes += cap(c.data) - size
	return true
}

// drop drops the rows before the second from, and resources without a row in the hour before it. Rows that share a
// chunk with later rows stay in memory.
func (h *history) drop(from int64) {
	if from <= h.from {
		return
	}
	h.from = from
	i, _ := slices.BinarySearch(h.present, from)
	h.present = slices.Delete(h.present, 0, i)
	for name, s := range h.series {
		n := 0
		for n < len(s.chunks) && s.chunks[n].last < from {
			s.before = s.chunks[n].last
			h.bytes -= chunkBytes + cap(s.chunks[n].data)
			n++
		}
		s.chunks = slices.Delete(s.chunks, 0, n)
		if len(s.chunks) == 0 && s.before < from-maxIdle {
			delete(h.series, name)
			h.sorted = nil
			h.bytes -= seriesBytes + len(name)
		}
	}
}

// maxIdle is the number of idle seconds after which a resource counts as absent.
const maxIdle = int64(collector.DefaultRetireAfter / 1e9)

// after returns a history that continues h in the second from: it has no rows, and the resources of h.
func (h *history) after(from int64) *history {
	next := newHistory(from)
	for name, s := range h.series {
		if last, _ := s.read(from, from, nil); last >= from-maxIdle {
			next.get(name).before = last
		}
	}
	return next
}

// list returns all series, sorted by name. The total of inbound calls is the last one.
func (h *history) list() []*series {
	if h.sorted == nil {
		for _, s := range h.series {
			h.sorted = append(h.sorted, s)
		}
		slices.SortFunc(h.sorted, func(a, b *series) int {
			if x, y := a.total(), b.total(); x != y {
				if x {
					return 1
				}
				return -1
			}
			return strings.Compare(a.name, b.name)
		})
	}
	return h.sorted
}

// presentIn returns the seconds in [from, to) with a row.
func (h *history) presentIn(from, to int64) []int64 {
	i, _ := slices.BinarySearch(h.present, from)
	j, _ := slices.BinarySearch(h.present, max(from, to))
	return h.present[i:j]
}

// total reports whether the series is the total of inbound calls.
func (s *series) total() bool { return s.name == collector.InboundTotal }

// last returns the last second with a row, or 0.
func (s *series) last() int64 {
	if n := len(s.chunks); n > 0 {
		return s.chunks[n-1].last
	}
	return s.before
}

// read appends the records in [from, to) to list. It returns the last second before from with a row, or 0.
func (s *series) read(from, to int64, list []node.MetricNode) (before int64, all []node.MetricNode) {
	before = s.before
	var unpacked [maxChunk + 8]row
	for i := range s.chunks {
		c := &s.chunks[i]
		if c.first >= to && c.first >= from {
			break
		}
		if c.last < from {
			before = c.last
			continue
		}
		for _, r := range c.rows(unpacked[:0]) {
			switch {
			case r.at < from:
				before = r.at
			case r.at < to:
				list = append(list, r.record())
			}
		}
	}
	return before, list
}

// write writes the seconds in [from, to). labels and values are the labels of the process. write adds the label
// resource.
func (h *history) write(w *seconds.RowWriter, s *seconds.Selection, from, to int64, labels, values []string,
	run func(int64) int64,
) {
	present := h.presentIn(from, to)
	if len(present) == 0 {
		return
	}
	names, own := append(slices.Clone(labels), "resource"), append(slices.Clone(values), "")
	var records []node.MetricNode
	for _, x := range h.list() {
		if !selected(s, x) || x.last() < from-maxIdle {
			continue
		}
		before, all := x.read(from, to, records[:0])
		if len(all) == 0 && before < from-maxIdle {
			continue
		}
		records = all
		past := seconds.ActiveAt(before)
		if x.total() {
			w.Write(true, &past, present, all, labels, values)
			continue
		}
		own[len(own)-1] = strings.ToValidUTF8(x.name, "\uFFFD")
		w.Write(false, &past, present, all, names, own)
	}
	w.WriteRun(present, run, labels, values)
}

// size returns the size of the largest second at or after from. lines is the length of the labels of the process.
func (h *history) size(w *seconds.RowWriter, s *seconds.Selection, from int64, labels int) (all seconds.Size) {
	if len(h.present) == 0 || h.present[len(h.present)-1] < from {
		return all
	}
	add := func(one seconds.Size, label int) {
		all = all.Add(seconds.Size{Samples: one.Samples, Bytes: one.Bytes + one.Samples*label})
	}
	resource := len(`,resource=""`)
	for _, x := range h.list() {
		last := x.last()
		if !selected(s, x) || last < from-maxIdle {
			continue
		}
		active, idle := w.Size(x.total())
		if last < from-61 {
			active = idle
		}
		add(active, labels+resource+len(x.name))
	}
	add(w.RunSize(), labels)
	return all
}

// selected reports whether a series is selected.
func selected(s *seconds.Selection, x *series) bool {
	return len(s.Resources) == 0 || !x.total() && slices.Contains(s.Resources, x.name)
}
