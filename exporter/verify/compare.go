package verify

import (
	"context"
	"fmt"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// comparison compares the log with a database, part by part.
type comparison struct {
	*client
	gap      Gap
	options  Options
	runs     *runs.File // of the log
	selector string
	metrics  map[string]bool // that are compared
	left     map[string]bool // those that would have been, but are not in the database
	found    bool            // the database has series of the instance

	resources map[string]bool // that are compared; nil for all
	unknown   map[string]bool // those that would have been, but are not in the database
	whose     *owners         // nil until something is missing
	partSize  int
	report    Report
	findings  findings
	between   bool         // some samples are not at a whole second
	again     bool         // some seconds are stored several times
	heal      seconds.Sink // gets what is missing; nil for nobody
}

// compare compares the seconds from and to, Unix times, and those between.
func (c *comparison) compare(ctx context.Context, log *expected, from, to int64) error {
	if from > to {
		return nil
	}
	return divided(from, to, func(from, to int64) error {
		series, err := c.samples(ctx, c.selector, from, to)
		if err != nil {
			return err
		}
		for warning := range c.warned {
			if c.heal != nil { // what is not in the response may be in the database
				return fmt.Errorf("nothing is written while the server warns: %s", warning)
			}
		}
		p := &part{comparison: c, log: log, from: from, to: to, points: map[key][]point{}, seconds: map[int64]*second{}}
		if err := p.sort(series); err != nil {
			return err
		}
		return p.compare(ctx)
	})
}
