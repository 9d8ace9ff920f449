package verify

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/push"
)

// Target is the receiver of the samples that [Heal] and [Write] write.
type Target struct {
	// Push selects a server that accepts samples out of order: Prometheus with storage.tsdb.out_of_order_time_window,
	// or VictoriaMetrics. Of its fields, URL, Client, Timeout, MaxSamples and Logger are used; [Write] also uses
	// Labels.
	Push push.Options
	// OpenMetrics, if it is not nil, gets the samples instead of the server, as text for
	// promtool tsdb create-blocks-from openmetrics. The text is incomplete after an error.
	OpenMetrics io.Writer
}

// Check returns an error for each invalid field, as a [collector.OptionError]. [Write] checks its labels itself.
func (t Target) Check() error {
	var errs []error
	if len(t.Push.Labels) > 0 {
		err := errors.New("must be empty, because samples get the labels of the instance in the database")
		errs = append(errs, &collector.OptionError{Package: "verify", Field: "Labels", Err: err})
	}
	if t.OpenMetrics == nil {
		t.Push.Labels = map[string]string{"job": "any", "instance": "any"} // push requires labels
		errs = append(errs, t.Push.Check())
	}
	return errors.Join(errs...)
}

// write calls emit with a Sink that writes its samples to the target, with the labels.
func (t *Target) write(
	ctx context.Context, labels map[string]string, emit func(seconds.Sink) error,
) (result push.WriteResult, err error) {
	if t.OpenMetrics != nil {
		result.Written, err = writeOpenMetrics(t.OpenMetrics, labels, emit)
		return result, err
	}
	o := t.Push
	o.Labels = labels
	if _, ok := labels["job"]; !ok || labels["instance"] == "" {
		return result, errors.New("verify: the series of the instance need the labels job and instance")
	}
	return push.Write(ctx, o, emit)
}

// writeOpenMetrics writes the samples that emit sends to the Sink as OpenMetrics text, for promtool tsdb
// create-blocks-from openmetrics. It returns the number of samples. To bound memory it divides a long text into pages.
// Each page repeats the families and series with later seconds, which promtool accepts.
func writeOpenMetrics(w io.Writer, labels map[string]string, emit func(seconds.Sink) error) (samples int64, err error) {
	p := &pageWriter{Page: new(text.Pages).Get(text.OpenMetrics), w: bufio.NewWriter(w)}
	err = emit(push.NewLabelled(p, labels))
	// The end marker shows promtool that the text is complete, so it is missing after an error.
	if p.flush(); err == nil {
		_, _ = p.w.WriteString(text.End)
	}
	return p.samples, errors.Join(err, p.w.Flush())
}

// maxPageSamples is the size of a page: with so many samples, a pageWriter begins the next page at the next series.
const maxPageSamples = 1 << 20

// pageWriter is a Sink that writes its samples in pages. Errors are sticky in w: Flush returns the first one.
type pageWriter struct {
	*text.Page
	w       *bufio.Writer
	samples int64 // in pages that were written
}

// Series implements seconds.Sink.
func (p *pageWriter) Series(f *table.Family, names, values []string) {
	if p.Samples() >= maxPageSamples {
		p.flush()
	}
	p.Page.Series(f, names, values)
}

// flush writes the page and clears it.
func (p *pageWriter) flush() {
	p.samples += int64(p.Samples())
	_, _ = p.WriteTo(p.w)
	p.Reset()
}
