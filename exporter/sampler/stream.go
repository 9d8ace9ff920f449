package sampler

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// Stream returns the stream of samples for per-second endpoints and pushes.
func (s *Sampler) Stream() seconds.Stream { return stream{s, seconds.NewLine(s.stats)} }

// stream implements seconds.Stream for a Sampler.
type stream struct {
	*Sampler
	line *seconds.Line
}

// Sealed implements [seconds.Stream]. The last second is sealed after its gathering, or after one more second without a
// gathering. Sealed then counts it as missed.
func (s stream) Sealed(open int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if late := s.line.Index(open) - 2; s.last < late {
		s.miss(late + 1)
		s.last = late
	}
	return min(s.line.Unix(s.last+1), open)
}

// Knows implements [seconds.Stream].
func (s stream) Knows(metric string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.families[metric] != nil
}

// Size implements [seconds.Stream].
func (s stream) Size(sel *seconds.Selection, _ int64) (all seconds.Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.order {
		if x.selected(sel) {
			const rest = len(`{=""} 123456789 1700000000000`) + 1
			length := len(x.key) + strings.Count(x.key, separator) + x.escape + rest
			all = all.Add(seconds.Size{Samples: 1, Bytes: length})
		}
	}
	return all
}

// Emit implements [seconds.Stream].
func (s stream) Emit(sel *seconds.Selection, from, to int64, limit seconds.Limit, sink seconds.Sink) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = min(to, s.line.After(from, max(limit.Seconds, 1)))
	if !s.sorted {
		slices.SortFunc(s.order, func(a, b *series) int { return strings.Compare(a.key, b.key) })
		s.sorted = true
	}
	var names, values []string
	line, begin, end := s.stats.Timeline(), s.line.Index(from), s.line.Index(to)
	for _, x := range s.order {
		if !x.selected(sel) {
			continue
		}
		_, rest, _ := strings.Cut(x.key, separator)
		names, values = names[:0], values[:0]
		for len(rest) > 0 {
			var name, value string
			name, rest, _ = strings.Cut(rest, separator)
			value, rest, _ = strings.Cut(rest, separator)
			names, values = append(names, name), append(values, value)
		}
		sink.Series(&x.family.Family, names, values)
		for i, v := range x.values.seconds(begin, end) {
			if name, ok := line.WallTime(i); ok {
				sink.Value(name.Unix(), v)
			}
		}
	}
	return to
}

// selected reports whether the selection contains the series.
func (x *series) selected(sel *seconds.Selection) bool {
	return len(sel.Resources) == 0 && sel.Has(x.family.Name)
}

// ring holds the values of a series in the last seconds. It takes eight bytes for each second of the history; a young
// series takes little more than its age needs. NaN means no value. The zero value is empty.
type ring struct {
	values []float64 // the value of a second has the index (second - first) modulo the history
	first  int64
	end    int64 // second after the last stored one
}

// put stores the value of a second, in a ring for a history of this number of seconds. The second must be the last
// stored one or a later one.
func (r *ring) put(second int64, v float64, history int) {
	if r.values == nil || second-r.end >= int64(history) {
		*r = ring{first: second, end: second}
	}
	for i := min(r.end, second); i <= second; i++ {
		at := int((i - r.first) % int64(history))
		if at == len(r.values) {
			r.grow(history)
		}
		if r.values[at] = math.NaN(); i == second {
			r.values[at] = v
		}
	}
	r.end = second + 1
}

// grow adds a slot. The memory of a full ring is at most the history.
func (r *ring) grow(history int) {
	if n := len(r.values); n == cap(r.values) {
		r.values = append(make([]float64, 0, min(max(2*n, 16), history)), r.values...)
	}
	r.values = append(r.values, 0)
}

// seconds iterates over the seconds in [from, to) that have a value.
func (r *ring) seconds(from, to int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		n := int64(len(r.values))
		for i := max(from, r.end-n); i < min(to, r.end); i++ {
			if v := r.values[(i-r.first)%n]; !math.IsNaN(v) && !yield(i, v) {
				return
			}
		}
	}
}
