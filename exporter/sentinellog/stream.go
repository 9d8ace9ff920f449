package sentinellog

import (
	"math"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/leap"
)

// source is the Follower as the source of its consumers.
type source struct{ *Follower }

var _ seconds.Archive = source{}

// Timeline implements seconds.Source.
func (s source) Timeline() *leap.Timeline { return s.stats.Timeline() }

// FirstSecond implements seconds.Source.
func (s source) FirstSecond() int64 { return s.stats.FirstSecond() }

// Seal implements seconds.Source.
func (s source) Seal() collector.Boundary { return s.stats.Seal() }

// History implements seconds.Source.
func (s source) History() time.Duration { return DefaultHistory }

// Publish implements seconds.Source.
func (s source) Publish(all ...collector.Metric) (withdraw func()) { return s.stats.Publish(all...) }

// Kept implements seconds.Archive.
func (s source) Kept() time.Duration { return s.opts.Keep }

// StateFile implements seconds.Archive.
func (s source) StateFile(name string) (string, error) { return s.stateFile(name) }

// stream is the stream of all processes.
type stream struct{ *Follower }

var _ seconds.Stream = stream{}

// Knows implements seconds.Stream.
func (s stream) Knows(metric string) bool { return s.families.Knows(metric) }

// Sealed implements seconds.Stream.
func (s stream) Sealed(open int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(open, s.sealed)
}

// view is the part of a process in a range of the line.
type view struct {
	*process
	rows     *history
	from, to int64 // seconds of the process
}

// views returns the parts of all processes in [from, reached), seconds of the line. reached is at most to. It is less
// if the files have more seconds than are read together. The caller must unlock s.mu, and use the views before.
func (s stream) views(from, to int64) (views []view, reached int64) {
	blocks := map[*process]view{}
	for {
		s.mu.Lock()
		views, reached = views[:0], min(to, s.sealed)
		var missing *view
		for _, p := range s.processes {
			x := view{p, p.history, p.end(from), p.end(min(to, s.sealed))}
			if x.from >= x.to {
				continue
			}
			if x.from < p.history.from {
				block, ok := blocks[p]
				if !ok || block.from != x.from {
					missing = &x
					break
				}
				x.rows, x.to = block.rows, min(x.to, block.to)
				reached = min(reached, from+block.to-x.from)
			}
			views = append(views, x)
		}
		if missing == nil {
			return views, reached
		}
		s.mu.Unlock() // nobody waits for the files
		x := *missing
		var err error
		x.rows, x.to, err = x.past.read(s.opts.Dir, x.log, x.sum, x.from, x.to)
		s.failures.set(s.Follower, "past of "+x.name, err, "cannot read the past of a metric log")
		blocks[x.process] = x
	}
}

// Size implements seconds.Stream.
func (s stream) Size(sel *seconds.Selection, from int64) (all seconds.Size) {
	views, _ := s.views(from, math.MaxInt64)
	defer s.mu.Unlock()
	w := s.families.Writer(sel, nil)
	for _, x := range views {
		all = all.Add(x.rows.size(w, sel, x.from, seconds.LabelBytes(x.labels, x.values)))
	}
	return all
}

// Emit implements seconds.Stream.
func (s stream) Emit(sel *seconds.Selection, from, to int64, limit seconds.Limit, sink seconds.Sink) (reached int64) {
	views, reached := s.views(from, min(to, s.line.After(from, max(limit.Seconds, 1))))
	defer s.mu.Unlock()
	w := s.families.Writer(sel, sink)
	for _, x := range views {
		run := func(int64) int64 { return x.run }
		x.rows.write(w, sel, x.from, x.end(reached), x.labels, x.values, run)
	}
	return reached
}
