package prom

import (
	"context"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/delivery"
	"github.com/windowstat/windowstat/internal/atomicfile"
	"github.com/windowstat/windowstat/internal/clientip"
)

// savedCursor is the position of a scraper in the state file. The times are Unix times.
type savedCursor struct {
	scraper
	Host string // the scraper's name for this process: the header Host of its last request
	delivery.Position
	Used   int64 // last request
	Steady int64 // duration of frequent requests at a steady pace, in seconds
}

// positionsName is the name of the metric log's state file with the positions.
const positionsName = "cursors.json"

// save replaces the state file. If that fails, scrapers get some seconds twice after a restart.
func (s *Seconds) save() {
	if s.positions == "" {
		return
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	var list []savedCursor
	for _, x := range s.cursors.list() {
		list = append(list, x.saved())
	}
	if err := atomicfile.Replace(s.positions, list); err != nil {
		s.saveErrors.Add(1)
	}
}

// Save saves the positions of scrapers. It first decides about the last response of each scraper whose connection is
// idle and shows that the response was read; the other responses stay in doubt. Call Save when a server ends, before
// its connections are closed. Run of package exporter calls it.
func (s *Seconds) Save(ctx context.Context) {
	var all sync.WaitGroup
	for _, x := range s.cursors.list() {
		all.Go(func() {
			if !x.serving.TryLock() {
				return // a response is being written
			}
			defer x.serving.Unlock()
			if x.pending != nil && s.decide(ctx, x.pending, closingWait) == acknowledged {
				x.settle(acknowledged)
			}
		})
	}
	all.Wait()
	s.save()
}

// restore loads the positions that the previous process saved. Without them, scrapers get some seconds twice. A
// restored cursor keeps the time of its last request, and so its expiry.
func (s *Seconds) restore() {
	list, err := atomicfile.Load[[]savedCursor](s.positions, nil)
	if err != nil {
		s.saveErrors.Add(1)
		s.opts.Logger.Error("cannot load the positions of scrapers, which get some seconds twice", "err", err)
	}
	now := time.Now()
	oldest := s.line.First() - s.line.Kept() - 1 // bounds the seconds that are counted as lost
	for _, saved := range list {
		lastRequest := time.Unix(saved.Used, 0)
		if lastRequest.After(now) {
			lastRequest = now
		}
		at, err := saved.Restore(s.line, oldest)
		if err != nil {
			s.opts.Logger.Warn("cannot use the position of a scraper, which gets no earlier seconds",
				"cursor", saved.Cursor, "client", saved.Client, "err", err)
		}
		x := s.cursors.get(saved.scraper, clientip.OfAddress(saved.Client), at.Next, lastRequest)
		x.Position, x.target = at, saved.Host
		x.steady = time.Duration(min(max(saved.Steady, 0), maxSteady)) * time.Second
	}
}
