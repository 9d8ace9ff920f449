package prom

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"
	"github.com/windowstat/windowstat/internal/statefile"
)

// position is the position of a scraper in the file.
type position struct {
	scraper
	Next int64 // Unix time of the first second to send
	Used int64 // Unix time of the last request; 0 in a file without it
}

// positionsName is the name of the metric log's state file with the positions.
const positionsName = "cursors.json"

// save replaces the file of positions, after everything before the Unix time next was sent to a scraper. Its delivery is not
// known yet and assumed. If the file cannot be written, scrapers get some seconds twice after a restart.
func (s *Seconds) save(x *cursor, next int64) {
	s.saving.Lock()
	defer s.saving.Unlock()
	x.saved = next // guarded by saving
	if err := statefile.Replace(s.positions, s.cursors.positions()); err != nil {
		s.saveErrors.Add(1)
	}
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
		x := s.cursors.get(p.scraper, clienthost.OfAddress(p.Client), s.resume(p.Next), used)
		x.saved = p.Next
		x.addLost(x.next - s.first) // seconds of this process whose names were sent before
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
