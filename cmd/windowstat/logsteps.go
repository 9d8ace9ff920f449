package main

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// steps prints rows added up: those of each step of the clock, or all of them.
type steps struct {
	printer
	zone  *time.Location
	step  time.Duration // 0 for all
	top   int           // how many resources of a step are printed; 0 for all, and the total of inbound calls
	by    *column
	begin time.Time // of the step; if there is none, of all
	end   time.Time
	totals
}

// checkStep looks whether steps of a day can be as long.
func checkStep(step time.Duration) error {
	if step < time.Second || step > 24*time.Hour || step%time.Second != 0 {
		return fmt.Errorf("%s is not whole seconds, from 1s to 24h", step)
	}
	return nil
}

func (s *steps) print(r *row) error {
	if s.step > 0 && !r.Start.Before(s.end) {
		if err := s.write(); err != nil {
			return err
		}
		s.begin, s.end = stepOf(r.Start, s.step, s.zone)
	}
	s.add(r.Row)
	return nil
}

// stepOf is the step that a second is in. Steps are counted from midnight, and the last one ends there: on a day that is longer
// or shorter, too.
func stepOf(second time.Time, step time.Duration, zone *time.Location) (begin, end time.Time) {
	y, m, d := second.In(zone).Date()
	midnight, next := dayStart(y, m, d, zone), dayStart(y, m, d+1, zone)
	if step == 24*time.Hour {
		return midnight, next
	}
	begin = midnight.Add(second.Sub(midnight).Truncate(step))
	end = begin.Add(step)
	if end.After(next) {
		end = next
	}
	return begin, end
}

// write prints the rows of a step, and begins another one.
func (s *steps) write() error {
	for i, x := range s.sorted(s.by.of) {
		if s.top > 0 && (i == s.top || x.Resource == collector.InboundTotal) {
			break
		}
		x.Start = s.begin
		if x.Success > 0 {
			x.RT = time.Duration(x.rt / float64(x.Success))
		}
		if err := s.printer.print(&row{Row: &x.Row, peak: x.peak, peakAt: x.peakAt}); err != nil {
			return err
		}
	}
	s.totals = totals{by: s.by}
	return nil
}

func (s *steps) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	return s.printer.flush()
}

// lastRows prints the last rows of all.
type lastRows struct {
	printer
	rows []kept // a ring
	next int
	most int
}

// kept is a copy of a row.
type kept struct {
	row
	of metriclog.Row
}

func (l *lastRows) print(r *row) error {
	if len(l.rows) < l.most {
		l.rows = append(l.rows, kept{})
	}
	k := &l.rows[l.next]
	line := append(k.line[:0], r.line...)
	k.row, k.of = *r, *r.Row
	k.line = line
	l.next = (l.next + 1) % l.most
	return nil
}

func (l *lastRows) flush() error {
	for i := range l.rows {
		k := &l.rows[i]
		if len(l.rows) == l.most {
			k = &l.rows[(l.next+i)%l.most]
		}
		k.Row = &k.of // the ring may have moved
		if err := l.printer.print(&k.row); err != nil {
			return err
		}
	}
	l.rows, l.next = nil, 0
	return l.printer.flush()
}
