package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/push"
)

// Target is where samples are written.
type Target struct {
	// Push is a server that accepts samples out of order: Prometheus with storage.tsdb.out_of_order_time_window, or VictoriaMetrics. URL,
	// Client, Timeout, MaxSamples and Logger are used, and by [Write] also Labels.
	Push push.Options
	// OpenMetrics, if it is not nil, gets the samples as text for promtool tsdb create-blocks-from openmetrics in the place of the
	// server. After an error it is incomplete.
	OpenMetrics io.Writer
}

// Healing is what [Heal] has done.
type Healing struct {
	Before, After Report // the same if nothing was sent
	push.WriteResult
}

// Heal compares like [Check] and writes the missing samples, with all labels that the series of the instance have in the
// database. It then compares again what it wrote. It writes a second only if the instance counted it, which the run of the
// second decides; docs/verify.md has the table of decisions. It never writes a second whose run is unknown, unless
// [Options].Runs contains 0.
//
// Seconds that it does not write are in [Report].Elsewhere, if other labels have them, and in [Report].NotHealed otherwise.
// Samples that differ or that the log lacks stay unchanged. Heal returns an error if the database has no series of the
// instance, if the server warns that a response may be incomplete, and if another Heal or Write of the same log is running.
// It retries a failed request for two minutes.
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
	err = c.find(ctx)
	if err == nil && !c.found && !c.gap.From.After(c.gap.To) { // a mistake in the labels would make new series
		err = errors.New("the database has no series with these labels in the range, nor in the day around it")
	}
	if err != nil {
		h.Before, err = c.done(err)
		h.After = h.Before
		return h, err
	}
	found := c.report
	h.WriteResult, err = to.write(ctx, found.Labels, func(sink seconds.Sink) (err error) {
		// Comparing and writing are one pass over the log: what is missing is handed on as it is found, and not collected.
		c.heal = sink
		h.Before, err = c.run(ctx)
		return err
	})
	h.After = h.Before
	if err != nil || h.Written == 0 || to.OpenMetrics != nil {
		return h, err
	}
	// A database may need a moment to show what was written, VictoriaMetrics ten seconds if the series was deleted.
	const looks = 30
	for range looks {
		c.heal, c.whose, c.report = nil, nil, found
		if h.After, err = c.run(ctx); err != nil || h.After.holes == 0 {
			break
		}
		background.Sleep(ctx, time.Second)
	}
	return h, err
}

// Write writes everything that the log has of the gap, with the labels of the Target: an imported log, or one that is to begin an empty
// database. Job and instance are needed. It compares nothing; see [Heal] for a database that has some of it.
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
	const batch = 20_000 // bounds how many samples are refused with one that is too old
	of, _ := gap.runs()
	if _, err := clamp(&gap, 0); err != nil {
		return result, err
	}
	return to.write(ctx, labels, func(sink seconds.Sink) error {
		_, err := gap.emit(ctx, of, batch, sink, func(time.Time) error { return nil })
		return err
	})
}

// write gives emit a Sink whose samples go to the target.
func (t *Target) write(ctx context.Context, labels map[string]string, emit func(seconds.Sink) error) (result push.WriteResult, err error) {
	if t.OpenMetrics != nil {
		result.Written, err = writeOpenMetrics(t.OpenMetrics, labels, emit)
		return result, err
	}
	o := t.Push
	o.Labels = labels
	if _, ok := labels["job"]; !ok || labels["instance"] == "" {
		return result, errors.New("verify: the series of the instance have no labels job and instance")
	}
	return push.Write(ctx, o, emit)
}

// Check returns everything that is wrong with a target, as [collector.OptionError]s, but for the labels of [Write].
func (t Target) Check() error {
	var errs []error
	if len(t.Push.Labels) > 0 {
		errs = append(errs, &collector.OptionError{Package: "verify", Field: "Labels", Err: errors.New("the labels to write are those of the database")})
	}
	if t.OpenMetrics == nil {
		t.Push.Labels = map[string]string{"job": "any", "instance": "any"}
		errs = append(errs, t.Push.Check())
	}
	return errors.Join(errs...)
}

// lock keeps others from healing from the same log.
func (g *Gap) lock() (unlock func() error, err error) {
	path, err := g.file("heal.lck")
	if err != nil || path == "" { // there is no log
		return func() error { return nil }, err
	}
	file, err := filelock.Lock(path)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another heal of this log is under way: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("one heal at a time needs a file to lock: %w", err)
	}
	return file.Close, nil
}

// writeOpenMetrics writes what emit gives to the Sink in OpenMetrics format, for promtool tsdb create-blocks-from openmetrics, and
// returns how many samples. What is long is several pages, in which families and series come again with later seconds, so that memory is
// bounded; promtool takes them for one.
func writeOpenMetrics(w io.Writer, labels map[string]string, emit func(seconds.Sink) error) (samples int64, err error) {
	x := &pages{Page: new(text.Pages).Get(text.OpenMetrics), w: bufio.NewWriter(w)}
	err = emit(push.NewLabelled(x, labels))
	if x.write(); err == nil {
		_, _ = x.w.WriteString(text.End)
	}
	return x.samples, errors.Join(err, x.w.Flush())
}

// pages is a Sink that writes a page whenever it is long enough.
type pages struct {
	*text.Page
	w       *bufio.Writer // whose Flush returns the first error
	samples int64
}

// Series implements seconds.Sink.
func (x *pages) Series(f *table.Family, names, values []string) {
	const maxSamples = 1 << 20
	if x.Samples() >= maxSamples {
		x.write()
	}
	x.Page.Series(f, names, values)
}

func (x *pages) write() {
	x.samples += int64(x.Samples())
	_, _ = x.WriteTo(x.w)
	x.Reset()
}
