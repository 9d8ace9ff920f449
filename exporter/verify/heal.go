package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/push"
)

// Healing is the result of [Heal].
type Healing struct {
	Before, After Report // equal if nothing was written to a server
	push.WriteResult
}

// maxRereads is the number of comparisons after a write, with a second between them. A database may need time to show
// samples: VictoriaMetrics needs ten seconds if the series was deleted before.
const maxRereads = 30

// Heal compares like [Check] and writes the missing samples, with all labels that the series of the instance have in
// the database. Then it repeats the comparison every second, about half a minute at most, until the database shows the
// samples. It writes a second only if the instance counted it; the package comment has the table of decisions. It never
// writes a second whose run is unknown, unless Options.Runs contains 0.
//
// Report.Elsewhere has the seconds that Heal does not write because other labels have them, and Report.NotHealed has
// the other seconds that it does not write. Heal does not change samples that are different or extra. It returns an
// error if the database has no series of the instance, if the server warns that a response may be incomplete, and if
// another Heal or Write of the same log is running. It retries a failed request for two minutes.
func Heal(ctx context.Context, gap Gap, o Options, to Target) (h Healing, err error) {
	if err := errors.Join(o.Check(gap.Namespace), to.Check()); err != nil {
		return h, err
	}
	c := newComparison(gap, o)
	defer c.http.CloseIdleConnections()
	unlock, err := gap.lock()
	if err != nil {
		return h, fmt.Errorf("verify: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	err = c.prepare(ctx)
	if err == nil && !c.hasSeries && !c.gap.From.After(c.gap.To) { // an error in the labels would create new series
		err = errors.New("the database has no series with these labels in the range, nor a day before or after it")
	}
	if err != nil {
		h.Before, err = c.finish(err)
		h.After = h.Before
		return h, err
	}
	prepared := c.report
	h.WriteResult, err = to.write(ctx, prepared.Labels, func(sink seconds.Sink) (err error) {
		// One pass over the log compares and writes: missing samples are written immediately and not collected.
		c.sink = sink
		h.Before, err = c.run(ctx)
		return err
	})
	h.After = h.Before
	if err != nil || h.Written == 0 || to.OpenMetrics != nil {
		return h, err
	}
	for range maxRereads {
		c.sink, c.ownership, c.report = nil, nil, prepared
		if h.After, err = c.run(ctx); err != nil || h.After.writable == 0 {
			break
		}
		background.Sleep(ctx, time.Second)
	}
	return h, err
}

// maxWriteSeconds is the number of seconds of resources that [Write] sends in one chunk. If one sample of a chunk is
// too old for the server, the server may refuse all of them.
const maxWriteSeconds = 20_000

// Write writes all samples of the gap with the labels of the Target, which must include job and instance. It compares
// nothing and is meant for an empty database or an imported log. For a database that has a part of the log, use [Heal].
func Write(ctx context.Context, gap Gap, to Target) (result push.WriteResult, err error) {
	labels := to.Push.Labels
	to.Push.Labels = nil
	if err := errors.Join(push.CheckLabels(labels), to.Check()); err != nil {
		return result, err
	}
	unlock, err := gap.lock()
	if err != nil {
		return result, fmt.Errorf("verify: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	processes, _ := gap.runs() // a second without a known run is written without a run
	if _, err := clamp(&gap, 0); err != nil {
		return result, err
	}
	return to.write(ctx, labels, func(sink seconds.Sink) error {
		_, err := gap.emit(ctx, processes, maxWriteSeconds, sink, func(time.Time) error { return nil })
		return err
	})
}

// lock locks the log: only one Heal or Write may run at a time. Two of them would write the same samples twice, and
// some servers keep duplicates. Without a log, lock does nothing.
func (g *Gap) lock() (unlock func() error, err error) {
	path, err := g.path("heal.lck")
	if err != nil || path == "" {
		return func() error { return nil }, err
	}
	file, err := filelock.Lock(path)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another heal of this log is running: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the log against other heals: %w", err)
	}
	return file.Close, nil
}
