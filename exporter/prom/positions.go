package prom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// position is where a reader is, as it is kept on disk.
type position struct {
	reader
	Next int64 // Unix time of the first second that it has not had
}

// positionsName is the name of the log's state file with the positions.
const positionsName = "cursors.json"

// save writes the positions to disk, all or nothing, after a reader was sent everything before the Unix time next. That it
// arrived cannot be known at this time; it counts as read. If the file cannot be written, readers get some seconds twice
// after a restart.
func (s *Seconds) save(x *cursor, next int64) {
	s.saving.Lock()
	defer s.saving.Unlock()
	x.kept = next // only here, under saving
	var list []position
	for _, each := range s.cursors.list() {
		if each.kept != 0 {
			list = append(list, position{each.reader, each.kept})
		}
	}
	if err := replaceFile(s.positions, list); err != nil {
		s.saveErrors.Add(1)
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

// restore takes the positions from the process before. A file that cannot be understood is an error: to go on without
// it would send seconds twice, and to overwrite it would lose what somebody may want to look at. An empty one is what a
// power cut may leave.
func (s *Seconds) restore() error {
	path := s.positions
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(bytes.TrimSpace(b)) == 0 {
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
	for _, p := range list {
		x, err := s.cursors.get(p.reader, s.resume(p.Next), now)
		if err != nil {
			return nil // there is room for fewer now
		}
		x.kept = p.Next
		x.lose(x.next - s.first) // seconds of this process that have a name that the reader has had
	}
	return nil
}

// aheadOfClock is how far a position may be ahead of this process, in seconds.
const aheadOfClock = 5 * 60

// resume is the index at which a reader goes on that has had everything before the Unix time next. If that is ahead of
// this process the clock was set back: by little, and the reader waits; by more, and it begins with this process, which
// hands out no second twice.
func (s *Seconds) resume(next int64) int64 {
	first, ok := s.unix(s.first)
	switch {
	case !ok:
		return s.first
	case next < first:
		return max(next, first-s.history()-1) // whatever the file says
	case next > first+aheadOfClock:
		return s.first
	}
	index, ok := s.stats.Timeline().Index(time.Unix(next, 0))
	if !ok {
		return s.first
	}
	return index
}
