package sampler

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/internal/redact"
	"github.com/windowstat/windowstat/leap"
)

// source is a Gatherer that is sampled separately, with the state of its families.
type source struct {
	prometheus.Gatherer
	running atomic.Bool // a call of Gather has not returned; a delayed result is dropped

	failing  bool
	last     int64                   // last second that was gathered within MaxDelay
	families map[string]*familyState // by the name in the Gatherer
	forgot   bool                    // a removed family had forgotten counters
}

// familyState is the state of a family of a source.
type familyState struct {
	kind         dto.MetricType
	lastSeen     int64 // last second whose gathering had the family
	lastComplete int64 // last second whose gathering had the family and no error
	series       int   // number of its series in Sampler.series
	forgot       bool  // counters of the family may have been forgotten or omitted
}

// sourcesOf returns the sources of a Gatherer: one for each element of a prometheus.Gatherers, or one for any other
// Gatherer.
func sourcesOf(g prometheus.Gatherer) (all []*source, err error) {
	if list, ok := g.(prometheus.Gatherers); ok {
		for i, g := range list {
			more, err := sourcesOf(g)
			if err != nil {
				return nil, fmt.Errorf("element %d of the Gatherers: %w", i, err)
			}
			all = append(all, more...)
		}
		if len(all) > 0 {
			return all, nil
		}
		g = nil
	}
	if g == nil {
		return nil, errors.New("no Gatherer")
	}
	return []*source{{Gatherer: g, last: never, families: map[string]*familyState{}}}, nil
}

// gathering is the result of a call of Gather.
type gathering struct {
	source   int // its index; -1 is the deadline
	families []*dto.MetricFamily
	err      error // error of some families, or of all if families is empty
	late     bool  // it did not finish within MaxDelay
	ended    leap.Reading
}

// failed reports whether the gathering returned an error and no families.
func (g *gathering) failed() bool { return g.err != nil && len(g.families) == 0 }

// gather calls all sources concurrently, and waits for their results for the second before the open one, at most
// MaxDelay after its end. It does not call a source whose previous call has not returned.
func (s *Sampler) gather(line *leap.Timeline, open leap.Second) []gathering {
	end := open.Start.Add(s.opts.MaxDelay)
	all, calls := make([]gathering, len(s.sources)), 0
	results := make(chan gathering, len(s.sources)+1) // capacity for all results, so that a delayed call never blocks
	for i, src := range s.sources {
		err := fmt.Errorf("gathering took longer than %v, see the sampler option MaxDelay", s.opts.MaxDelay)
		all[i] = gathering{err: err, late: true}
		if !src.running.Swap(true) {
			calls++
			go src.call(i, line, results)
		}
	}
	// All sources share one deadline, because a slow source must not delay the next ones. The deadline arrives through
	// the same channel after the results that were in time. These results count even if this goroutine is delayed.
	defer time.AfterFunc(min(end.Sub(line.Now()), s.opts.MaxDelay), func() { results <- gathering{source: -1} }).Stop()
	for range calls {
		r := <-results
		if r.source < 0 {
			break
		}
		if r.ended.Sub(end) <= 0 {
			all[r.source] = r
		}
	}
	return all
}

// call calls Gather, which may panic or call runtime.Goexit.
func (s *source) call(number int, line *leap.Timeline, to chan<- gathering) {
	r := gathering{source: number, err: errors.New("the Gatherer called runtime.Goexit")}
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("panic: %v", p)
		}
		r.ended = line.Now()
		s.running.Store(false)
		to <- r
	}()
	r.families, r.err = s.Gather()
}

// report counts and logs the gatherings that failed or exceeded MaxDelay. mu must be held.
func (s *Sampler) report(all []gathering) {
	for i, src := range s.sources {
		err := all[i].err
		switch {
		case all[i].late:
			s.late++
		case err != nil:
			s.errors++
		}
		if failing := err != nil; failing != src.failing {
			src.failing = failing
			if failing {
				s.log.Log(slog.LevelError, "cannot gather metrics; retrying every second",
					"gatherer", i, "err", redact.Line(err.Error()))
			} else {
				s.log.Log(slog.LevelInfo, "gathering metrics works again", "gatherer", i)
			}
		}
	}
}

// expire removes the series that were not gathered for the length of the history. mu must be held.
func (s *Sampler) expire() {
	// A series that returns within the history continues. A removed series may look like a new one when it returns;
	// forgot handles this case.
	oldest := s.last - int64(s.history())
	s.order = slices.DeleteFunc(s.order, func(x *series) bool {
		if x.second >= oldest {
			return false
		}
		delete(s.series, x.key)
		x.state.series--
		x.state.forgot = x.state.forgot || x.counter && x.created == 0
		if x.family.series--; x.family.series == 0 {
			delete(s.families, x.family.Name)
		}
		return true
	})
	if cap(s.order) > 4*len(s.order)+100 { // slices and maps do not shrink by themselves
		s.order, s.series, s.families = slices.Clone(s.order), shrunk(s.series), shrunk(s.families)
		for _, src := range s.sources {
			src.families = shrunk(src.families)
		}
	}
}

// shrunk returns a copy of m without the memory of deleted entries, which maps.Clone keeps.
func shrunk[T any](m map[string]T) map[string]T {
	small := make(map[string]T, len(m))
	maps.Copy(small, m)
	return small
}

// forget removes the families that the gathering of second did not have, and that have no series left.
func (s *source) forget(second int64) {
	for name, k := range s.families {
		if k.lastSeen != second && k.series == 0 {
			s.forgot = s.forgot || k.forgot
			delete(s.families, name)
		}
	}
}

// wallClock converts the start of a second to a time that is comparable with created timestamps, although the wall
// clock may be set.
//
// The clock is read once a second. A read computes a start of the open second with this property: everything that was
// created before the open second has an earlier created timestamp. The property holds whatever happened to the clock,
// provided that it was set at most once since the previous read. If the clock was not set, the start is the time at
// which the second began.
type wallClock struct {
	open  int64         // the open second at the last read
	at    time.Duration // the monotonic clock at the last read
	wall  time.Time     // the wall clock at the last read
	start time.Time     // start of the open second
	mark  time.Time     // the latest time that the wall clock can have shown by then
}

// read updates the clock with the readings at (monotonic) and wall, which is into after the start of the open second.
// It returns the starts of the previous and of the open second in Unix nanoseconds. If the previous second was not
// read, its start is later than all times.
func (c *wallClock) read(open int64, at time.Duration, wall time.Time, into time.Duration) (from, to int64) {
	from = math.MaxInt64
	unset := wall // the time that the clock would show if it had not been set since the last read
	if !c.wall.IsZero() {
		unset = c.wall.Add(at - c.at)
		if c.open == open-1 {
			from = c.start.UnixNano()
		}
	}
	// The second began at into before the time of the clock, or before the time that the clock would show if it had not
	// been set since the last read. Everything that was created before the second has a timestamp before the later of
	// the two.
	c.start = latest(c.mark, unset.Add(-into), wall.Add(-into))
	c.mark = latest(c.mark, unset, wall)
	c.open, c.at, c.wall = open, at, wall
	return from, c.start.UnixNano()
}

// latest returns the latest of the times.
func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
