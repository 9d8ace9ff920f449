package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
)

// parseRange reads from when to when. Of what can mean several seconds, the first is the beginning and the last the end.
func (s *search) parseRange(c *cli.Context, now time.Time) error {
	var errs []error
	var begin ends
	var err error
	if c.IsSet("from") {
		if begin, err = parseTime(c.String("from"), now, time.Time{}, s.zone); err != nil {
			errs = append(errs, fmt.Errorf("--from: %w", err))
			begin.first = now // to see what else is wrong
		}
	}
	to, err := parseTime(timeFlag(c, "to", "now"), now, begin.first, s.zone)
	if err != nil {
		errs = append(errs, fmt.Errorf("--to: %w", err))
	}
	switch {
	case c.IsSet("from"):
	case s.following:
		begin.first = now.Truncate(time.Second)
	default:
		begin.first = to.last.Add(-defaultRange)
	}
	if len(errs) == 0 && begin.first.After(to.last) {
		errs = append(errs, fmt.Errorf("--from: %s is after --to, %s", begin.first.In(s.zone).Format(timeLayout), to.last.In(s.zone).Format(timeLayout)))
	}
	s.query.From, s.query.To, s.query.PIDs = begin.first, to.last, s.pids
	if s.following {
		s.query.To = time.Time{}
	}
	return errors.Join(errs...)
}

func timeFlag(c *cli.Context, flag, otherwise string) string {
	if c.IsSet(flag) {
		return c.String(flag)
	}
	return otherwise
}
