package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"
	"github.com/windowstat/windowstat/internal/statefile"
)

// position is the position of a scraper in the file. The times are Unix times.
type position struct {
	scraper
	Host  string // what the scraper calls this process: the header Host of its last request
	Next  int64  // the first second that it may not have
	Doubt int64  // those before this one were sent, and nothing is known of their delivery
	Used  int64  // the last request

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
	var list []position
	for _, x := range s.cursors.list() {
		next, doubt, host := x.inDoubt()
		next, named := s.unix(next)
		doubt, alsoNamed := s.unix(doubt)
		used, steady := s.cursors.use(x)
		if named && alsoNamed { // else the position that was saved stays
			x.saved = position{x.scraper, host, next, doubt, used.Unix(), int64(steady / time.Second)}
		}
		if x.saved.Next != 0 {
			list = append(list, x.saved)
		}
	}
	if err := statefile.Replace(s.positions, list); err != nil {
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
			if a := x.last(); a != nil {
				if d, err := a.decide(ctx); err == nil && d == acknowledged {
					x.settle(d)
				}
			}
		})
	}
	all.Wait()
	s.save()
}

// unix returns the Unix time of a second of this process or an earlier one. It reports false if the second has no name.
func (s *Seconds) unix(index int64) (int64, bool) {
	if index < s.first {
		return index, true // the first second of a timeline has its Unix time as its index
	}
	name, ok := s.stats.Timeline().Name(index)
	return name.Unix(), ok
}

// restore reads the positions that an earlier process saved. A file that cannot be read costs the positions that it held: it is
// set aside, and scrapers get some seconds twice. Cursors stay as old as they were.
func (s *Seconds) restore() {
	list, err := readPositions(s.positions)
	if err != nil {
		s.saveErrors.Add(1)
		aside := s.positions + ".unreadable"
		s.logger.Error("cannot read the positions of scrapers, which get some seconds twice; the file is set aside",
			"file", aside, "err", errors.Join(err, os.Rename(s.positions, aside)))
	}
	now := time.Now()
	for _, p := range list {
		used := time.Unix(p.Used, 0)
		if used.After(now) {
			used = now
		}
		next, doubt := s.resume(p.Next), s.resume(max(p.Doubt, p.Next))
		if doubt > s.first {
			next = doubt // the clock was set back: these seconds have other values now
		}
		x := s.cursors.get(p.scraper, clienthost.OfAddress(p.Client), next, used)
		x.saved, x.doubt, x.target, x.restored = p, doubt, p.Host, true
		x.steady = time.Duration(min(max(p.Steady, 0), maxSteady)) * time.Second
		x.addLost(next - s.first) // seconds of this process whose names were sent before
	}
}

// readPositions reads a file of positions. There are none without a file.
func readPositions(path string) (list []position, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// maxAhead is how many seconds a position may be ahead of this process.
const maxAhead = 5 * 60

// resume returns the index of the first second to send to a scraper that has everything before the Unix time next. If next is
// ahead of this process, the clock was set back: up to [maxAhead] the scraper waits, beyond that it begins with the first
// second of this process, which sends no second twice.
func (s *Seconds) resume(next int64) int64 {
	first, ok := s.unix(s.first)
	switch {
	case !ok:
		return s.first
	case next < first:
		return max(next, first-s.history()-1) // bounds what a wrong file can say
	case next > first+maxAhead:
		return s.first
	}
	index, ok := s.stats.Timeline().Index(time.Unix(next, 0))
	if !ok {
		return s.first
	}
	return index
}
