package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
)

// question is what windowstat log and windowstat report ask of an incident.
type question struct {
	dirs   []string
	onset  bool
	limits []collector.Limit
	offset time.Duration
	most   time.Duration // of the range; 0 is no limit
}

func clockOffset(q *question) cli.Flag {
	return &cli.DurationFlag{Name: "clock-offset", Value: 50 * time.Millisecond, Destination: &q.offset, Usage: "`DURATION` by which clocks of different --dir may differ"}
}

// read selects rows in each directory, and reads them. The check is of further options.
func (q *question) read(ctx context.Context, c *cli.Command, set flags.Set, source logquery.Source, check error) (*incident.Seconds, error) {
	errs := []error{check}
	if q.offset < 0 {
		errs = append(errs, fmt.Errorf("--clock-offset: %v is negative", q.offset))
	}
	if len(q.dirs) == 0 {
		q.dirs = []string{""}
	}
	now, all := time.Now(), []*logquery.Selection{}
	for _, source.Dir = range q.dirs {
		s, err := logquery.Select(source, now)
		all, errs = append(all, s), append(errs, err)
		if q.most > 0 && s.To.Sub(s.From) >= q.most {
			errs = append(errs, fmt.Errorf("--from: more than %v before --to", q.most))
		}
	}
	if err := set.Check(c, errors.Join(errs...)); err != nil {
		return nil, err
	}
	return incident.Read(ctx, all, c.Root().ErrWriter)
}

// answers returns what the seconds say.
func (q *question) answers(s *incident.Seconds) *incident.Answers {
	a := &incident.Answers{Notes: s.Notes(q.onset)}
	if q.onset {
		a.Onsets = s.Onsets(q.offset)
	}
	for _, l := range q.limits {
		found := s.Backtest(l)
		if a.Trials = append(a.Trials, found...); len(found) == 0 {
			a.Notes = append(a.Notes, fmt.Sprintf("the log has no resource for the limit %s", l))
		}
	}
	return a
}

// answer prints the answers for windowstat log.
func (q *question) answer(ctx context.Context, c *cli.Command, set flags.Set, o *logquery.Options) error {
	write := map[string]func(*incident.Answers, io.Writer) error{"table": (*incident.Answers).WriteTable, "json": (*incident.Answers).WriteJSON}[cmp.Or(o.Output, "table")]
	var check error
	if write == nil {
		check = fmt.Errorf("--format: %q is not one of json, table, which --onset and --backtest have", o.Output)
	}
	s, err := q.read(ctx, c, set, o.Source, check)
	if err != nil {
		return err
	}
	return write(q.answers(s), c.Root().Writer)
}
