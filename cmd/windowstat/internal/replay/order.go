package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// advance takes lines into the timeline, each time of the log that is furthest behind, until one must be read first, which it
// returns; nil if all have ended or nothing is there.
//
// A log's place is its latest time so far, not that of its next line: a line that is out of order within its log must not be taken to be
// behind those of other logs. So each log is in order by itself, up to the tolerance, and all of them are in one timeline.
func (r *Follower) advance() (*log, error) {
	for {
		var first *log
		for _, l := range r.logs {
			if !l.ready && !r.settle(l) {
				return l, nil
			}
			if l.ready && (first == nil || l.latest < first.latest) {
				first = l
			}
		}
		switch {
		// The next log is opened when the others have come to its beginning: a year of rotated files has few open at a time.
		case len(r.waiting) > 0 && (first == nil || r.waiting[0].first <= first.latest):
			r.logs, r.waiting = append(r.logs, r.waiting[0]), r.waiting[1:]
			continue
		case first == nil:
			r.logs = slices.DeleteFunc(r.logs, func(l *log) bool { return l.ended })
			return nil, nil
		}
		it := &first.items[0]
		first.items, first.ready = first.items[1:], false
		if err := r.take(first, it); err != nil {
			return nil, err
		}
	}
}

// witnesses is how many lines decide whether the one before them is an outlier.
const witnesses = 10

// settle drops lines from the future and outliers, until the first line of a log is one to take. An outlier is ahead of the lines
// before it by more than the tolerance, and most of those behind it are not. It is false if more must be read to tell.
func (r *Follower) settle(l *log) bool {
	tolerance := int64(r.Tolerance)
	for ; len(l.items) > 0; l.items = l.items[1:] {
		at := l.items[0].stamp
		switch {
		case at > r.present:
			r.counts.Future++
			continue
		case at > l.latest+tolerance:
			// The lines behind it may not have been read yet.
			if len(l.items) <= witnesses && !l.ended && !l.idle {
				return false
			}
			behind := l.items[1:min(len(l.items), 1+witnesses)]
			earlier := 0
			for i := range behind {
				if behind[i].stamp < at-tolerance {
					earlier++
				}
			}
			if 2*earlier > len(behind) {
				r.counts.Outliers++
				continue
			}
		}
		l.latest, l.ready = max(l.latest, at), true
		return true
	}
	return l.ended || l.idle
}

// fill reads more of a log. It reports whether there was anything.
func (r *Follower) fill(l *log) (bool, error) {
	if l.input == nil {
		f, err := open(l.name, r.Stdin)
		if err != nil {
			l.ended = true
			return false, err
		}
		l.input = newStream(f, r.done)
	}
	x, err := l.input.look()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.parse(l, x)
		l.upTo, l.idle = x.upTo, !x.upTo.IsZero()
		return !l.idle, nil
	}
	l.ended = true
	if l.parser != nil && l.parser.Partial() {
		r.counts.Lines++
		r.malformed(l, nil, errCutOff)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return false, errors.Join(err, l.input.close())
}

// sortByBeginning sorts logs by their first lines: each is opened when the others have come so far, so few are open at a time.
func sortByBeginning(logs []*log) {
	slices.SortStableFunc(logs, func(a, b *log) int { return cmp.Compare(a.first, b.first) })
}
