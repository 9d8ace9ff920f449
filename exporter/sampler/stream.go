package sampler

import (
	"slices"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// Stream returns what per-second endpoints and pushes read.
func (s *Sampler) Stream() seconds.Stream { return stream{s, seconds.NewLine(s.stats)} }

// stream is a Sampler as a seconds.Stream.
type stream struct {
	*Sampler
	line *seconds.Line
}

// Sealed implements [seconds.Stream]. The last second is not sealed before it was gathered, for at most a second.
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
			all = all.Add(seconds.Size{Samples: 1, Bytes: len(x.key) + strings.Count(x.key, separator) + rest})
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
			if name, ok := line.Name(i); ok {
				sink.Value(name.Unix(), v)
			}
		}
	}
	return to
}

// selected reports whether the selection has the series.
func (x *series) selected(sel *seconds.Selection) bool {
	return len(sel.Resources) == 0 && (len(sel.Metrics) == 0 || slices.Contains(sel.Metrics, x.family.Name))
}
