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

// source is a Gatherer that is sampled by itself, and what is remembered of it.
type source struct {
	prometheus.Gatherer
	running atomic.Bool // a call of Gather has not returned; what it returns when it is late nobody receives

	failing  bool
	last     int64             // the last second that was gathered in time
	families map[string]*known // by the name that the Gatherer gives them
	forgot   bool              // a family was forgotten that had forgotten counters
}

// known is what is known of a family of a source.
type known struct {
	present int64 // the last second whose gathering had it
	whole   int64 // the last second whose gathering had it, and no error
	series  int   // that are remembered
	forgot  bool  // there may be counters that are not remembered
}

// sourcesOf returns the sources that a Gatherer consists of.
func sourcesOf(g prometheus.Gatherer) (all []*source, err error) {
	if list, ok := g.(prometheus.Gatherers); ok {
		for i, g := range list {
			more, err := sourcesOf(g)
			if err != nil {
				return nil, fmt.Errorf("number %d of the Gatherers: %w", i, err)
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
	return []*source{{Gatherer: g, last: never, families: map[string]*known{}}}, nil
}

// gathering is the result of a call of Gather.
type gathering struct {
	source   int // its number; -1 says that the time is over
	families []*dto.MetricFamily
	err      error // what is wrong with some of them, or with all if there are none
	late     bool  // it did not end in time
	ended    leap.Reading
}

// failed reports whether it has nothing.
func (g *gathering) failed() bool { return g.err != nil && len(g.families) == 0 }

// gather calls all sources at once, and waits for those that are in time for the second before the open one. One that is still being
// called is not called again.
func (s *Sampler) gather(line *leap.Timeline, open leap.Second) []gathering {
	end := open.Start.Add(s.opts.MaxDelay)
	all, calls := make([]gathering, len(s.sources)), 0
	results := make(chan gathering, len(s.sources)+1) // a call that is late does not wait for anybody
	for i, src := range s.sources {
		all[i] = gathering{err: fmt.Errorf("it takes longer than %v, see MaxDelay of the sampler's options", s.opts.MaxDelay), late: true}
		if !src.running.Swap(true) {
			calls++
			go src.call(i, line, results)
		}
	}
	// All share one deadline: a source that is late must not make the next ones late. It comes behind the results that were in time, so
	// these count even if this goroutine is late.
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

// call calls Gather, which may panic or end its goroutine.
func (s *source) call(number int, line *leap.Timeline, to chan<- gathering) {
	r := gathering{source: number, err: errors.New("the Gatherer has ended its goroutine")}
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

// report counts and logs the gatherings that failed or were late. Holds mu.
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
				s.log.Log(slog.LevelError, "cannot gather metrics; retrying every second", "gatherer", i, "err", redact.Line(err.Error()))
			} else {
				s.log.Log(slog.LevelInfo, "gathering metrics works again", "gatherer", i)
			}
		}
	}
}

// expire forgets the series that were not gathered for as long as the history. Holds mu.
func (s *Sampler) expire() {
	// A series that comes back within the history goes on; one that was forgotten may be taken for new, see forgot.
	oldest := s.last - int64(s.history())
	s.order = slices.DeleteFunc(s.order, func(x *series) bool {
		if x.second >= oldest {
			return false
		}
		delete(s.series, x.key)
		x.known.series--
		x.known.forgot = x.known.forgot || x.counter && x.created == 0
		if x.family.series--; x.family.series == 0 {
			delete(s.families, x.family.Name)
		}
		return true
	})
	if cap(s.order) > 4*len(s.order)+100 { // neither slices nor maps shrink by themselves
		s.order, s.series, s.families = slices.Clone(s.order), shrunk(s.series), shrunk(s.families)
		for _, src := range s.sources {
			src.families = shrunk(src.families)
		}
	}
}

// shrunk is a copy without the memory of what was deleted, which maps.Clone keeps.
func shrunk[T any](m map[string]T) map[string]T {
	small := make(map[string]T, len(m))
	maps.Copy(small, m)
	return small
}

// forget forgets the families that are not in the gathering of a second any more, and of which no series is remembered.
func (s *source) forget(second int64) {
	for name, k := range s.families {
		if k.present != second && k.series == 0 {
			s.forgot = s.forgot || k.forgot
			delete(s.families, name)
		}
	}
}

// wallClock compares created timestamps with the wall clock, which may be set.
//
// It is read once a second. Its start is such that whatever was created before the open second has a created timestamp from before
// it, whatever was done to the clock, provided that it was set at most once since the turn before. While nobody sets the
// clock, it is when the second began.
type wallClock struct {
	open  int64         // the second that was open at the last turn
	at    time.Duration // the last turn, by the monotonic clock
	wall  time.Time     // what the wall clock showed then
	start time.Time     // of that second
	mark  time.Time     // the latest time that the wall clock can have shown until then
}

// turn reads the clocks, so far into the open second. It returns the starts of the second before and of the open one in Unix
// nanoseconds. Without a turn in the second before, its start is after all times.
func (c *wallClock) turn(open int64, at time.Duration, wall time.Time, into time.Duration) (from, to int64) {
	from = math.MaxInt64
	unset := wall // what the clock would show if nobody had set it since the turn before
	if !c.wall.IsZero() {
		unset = c.wall.Add(at - c.at)
		if c.open == open-1 {
			from = c.start.UnixNano()
		}
	}
	// The second began by the clock as it is, or as it would be if it had not been set since the last turn. Whatever was created before has
	// a timestamp from before the later one.
	c.start = latest(c.mark, unset.Add(-into), wall.Add(-into))
	c.mark = latest(c.mark, unset, wall)
	c.open, c.at, c.wall = open, at, wall
	return from, c.start.UnixNano()
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
