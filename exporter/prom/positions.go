package prom

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// position is where a reader is, as it is kept beside the log.
type position struct {
	reader
	Next int64 // Unix time of the first second that it has not had
}

// positionsName is the name of the file with the positions, beside the log.
const positionsName = "cursors.json"

// save writes the positions to disk, all or nothing. That an answer arrived cannot be known at this time; it counts as
// read. If the file cannot be written, readers get some seconds twice after a restart.
func (s *Seconds) save() {
	s.saving.Lock()
	defer s.saving.Unlock()
	var list []position
	for _, x := range s.cursors.list() {
		next, _ := x.state()
		if unix, ok := s.unix(next); ok {
			list = append(list, position{x.reader, unix})
		}
	}
	if err := replaceFile(s.log.Beside(positionsName), list); err != nil {
		s.saveErrors++
	}
}

// unix is the Unix time of a second of this process or of one before it.
func (s *Seconds) unix(index int64) (int64, bool) {
	if index < s.first {
		return index, true // the line begins with a second that has its name for its index
	}
	name, ok := s.stats.Timeline().Name(index)
	return name.Unix(), ok
}

func replaceFile(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// aheadOfClock is how far a position may be ahead of the clock; further, and the clock was wrong when it was kept.
const aheadOfClock = 5 * 60

// restore takes the positions from the process before. A file that cannot be understood is an error: to go on without
// it would send seconds twice, and to overwrite it would lose what somebody may want to look at.
func (s *Seconds) restore() error {
	path := s.log.Beside(positionsName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var list []position
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("%s: %w; remove it to begin again, readers will get some seconds twice", path, err)
	}
	now := time.Now()
	open, _ := s.unix(s.stats.Seal().Open)
	for _, p := range list {
		next := p.Next
		if next > open+aheadOfClock {
			next = open
		}
		if next >= s.first {
			next, _ = s.stats.Timeline().Index(time.Unix(next, 0))
		}
		if _, err := s.cursors.get(p.reader, next, now); err != nil {
			return nil // there is room for fewer now
		}
	}
	return nil
}
