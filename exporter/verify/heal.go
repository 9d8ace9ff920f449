package verify

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/backfill"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/push"
)

// DefaultRate is how many samples [Heal] writes in a second: a part of what any receiver takes.
const DefaultRate = 20_000

// Heal is [Check], and writes the samples that are missing, and no others, to a server that accepts samples out of order, as
// [backfill.Gap.RemoteWrite] does, at most perSecond of them in a second, [DefaultRate] if zero. The report is of the database as
// it was before. The samples get all labels that the series of the instance have in the database. It is an error if it has none,
// and if the server warns that a response may not be complete. Samples that are different or extra stay as they are.
func Heal(ctx context.Context, gap backfill.Gap, o Options, to push.Options, perSecond int) (Report, backfill.WriteResult, error) {
	if err := errors.Join(o.Check(gap.Namespace), CheckHeal(to, perSecond)); err != nil {
		return Report{}, backfill.WriteResult{}, err
	}
	o.defaults(DefaultDelay)
	if perSecond == 0 {
		perSecond = DefaultRate
	}
	c, err := newComparison(gap, o)
	if err != nil {
		return Report{}, backfill.WriteResult{}, fmt.Errorf("verify: %w", err)
	}
	defer c.http.CloseIdleConnections()
	if to.Labels, err = c.instance(ctx, gap, o); err != nil {
		return c.done(0), backfill.WriteResult{}, fmt.Errorf("verify: %w", err)
	}
	var report Report
	var failed error
	result, err := push.Write(ctx, to, func(sink seconds.Sink) error {
		c.heal = &paced{sink, ctx, rate.NewLimiter(rate.Limit(perSecond), perSecond)}
		report, failed = c.run(ctx, gap, o)
		return nil
	})
	return report, result, errors.Join(failed, err)
}

// CheckHeal returns everything that is wrong with options for [Heal], as [collector.OptionError]s.
func CheckHeal(to push.Options, perSecond int) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "verify", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if len(to.Labels) > 0 {
		wrong("Labels", "the labels to write are those of the database")
	}
	if perSecond < 0 {
		wrong("Rate", "%d samples in a second; at least 1 is needed", perSecond)
	}
	to.Labels = map[string]string{"job": "any", "instance": "any"}
	return errors.Join(append(errs, to.Check())...)
}

// instance returns the labels that all series of the instance have.
func (c *comparison) instance(ctx context.Context, gap backfill.Gap, o Options) (map[string]string, error) {
	if _, err := clamp(&gap, o.Delay); err != nil {
		return nil, err
	}
	all, err := c.labels(ctx, c.selector, gap.From.Unix(), max(gap.To.Unix(), gap.From.Unix()))
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && !gap.From.After(gap.To) { // a mistake in the labels would make new series
		return nil, errors.New("the database has no series with these labels in the range; choose a longer one, or fill it as a gap")
	}
	found := o.Labels
	for _, labels := range all {
		if names := differing(all[0], labels); len(names) > 0 {
			return nil, severalError(names, all[0], labels)
		}
		found = instanceLabels(labels)
	}
	return found, nil
}

// paced is a Sink that takes a limited number of samples in a second.
type paced struct {
	seconds.Sink
	ctx   context.Context
	limit *rate.Limiter
}

// Value implements seconds.Sink.
func (p *paced) Value(unix int64, v float64) {
	_ = p.limit.Wait(p.ctx) // once ctx has ended nothing is sent
	p.Sink.Value(unix, v)
}
