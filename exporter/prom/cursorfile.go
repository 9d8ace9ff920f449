package prom

import (
	"context"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/atomicfile"
	"github.com/windowstat/windowstat/internal/clientip"
)

// saved is the position of a scraper in the file. The times are Unix times.
type saved struct {
	scraper
	Host string // what the scraper calls this process: the header Host of its last request
	seconds.Position
	Used   int64 // the last request
	Steady int64 // seconds for which requests have come often, and at a steady pace
}

// positionsName is the name of the metric log's state file with the positions.
const positionsName = "cursors.json"

// save replaces the file of positions. If it cannot be written, scrapers get some seconds twice after a restart.
func (s *Seconds) save() {
	if s.positions == "" {
		return
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	var list []saved
	for _, x := range s.cursors.list() {
		list = append(list, x.saved())
	}
	if err := atomicfile.Replace(s.positions, list); err != nil {
		s.saveErrors.Add(1)
	}
}

// Save decides about the last responses, as far as idle connections show that they were read, and saves the positions of
// scrapers, in which the others stay in doubt. It is for the end of a server, before its connections are closed; Run of package
// exporter does it.
func (s *Seconds) Save(ctx context.Context) {
	var all sync.WaitGroup
	for _, x := range s.cursors.list() {
		all.Go(func() {
			if !x.turn.TryLock() {
				return // a response is being written
			}
			defer x.turn.Unlock()
			if x.out != nil && s.decide(ctx, x.out, closingWait) == acknowledged {
				x.settle(acknowledged)
			}
		})
	}
	all.Wait()
	s.save()
}

// restore reads the positions that an earlier process saved. A file that cannot be read costs the positions that it held: it is
// set aside, and scrapers get some seconds twice. Cursors stay as old as they were.
func (s *Seconds) restore() {
	var list []saved
	if err := atomicfile.Read(s.positions, &list); err != nil {
		s.saveErrors.Add(1)
		aside, err := atomicfile.SetAside(s.positions, err)
		s.opts.Logger.Error("cannot read the positions of scrapers, which get some seconds twice; the file is set aside", "file", aside, "err", err)
	}
	now := time.Now()
	for _, p := range list {
		used := time.Unix(p.Used, 0)
		if used.After(now) {
			used = now
		}
		next, doubt := s.resume(p.Next), s.resume(max(p.Doubt, p.Next))
		first := s.line.First()
		if doubt > first {
			next = doubt // the clock was set back: these seconds have other values now
		}
		x := s.cursors.get(p.scraper, clientip.OfAddress(p.Client), next, used)
		x.Doubt, x.target = doubt, p.Host
		x.steady = time.Duration(min(max(p.Steady, 0), maxSteady)) * time.Second
		x.count.lost += s.line.Count(first, next) // seconds of this process whose names were sent before
	}
}

// resume returns the first second to send to a scraper that has everything before next. If next is ahead of this process, the clock
// was set back: up to [seconds.MaxAhead] the scraper waits, beyond that it begins with the first second of this process, which sends
// no second twice.
func (s *Seconds) resume(next int64) int64 {
	first := s.line.First()
	switch {
	case next < first:
		return max(next, first-s.history()-1) // bounds what a wrong file can say
	case next > first+seconds.MaxAhead:
		return first
	}
	return next
}
