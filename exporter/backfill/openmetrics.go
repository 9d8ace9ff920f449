package backfill

import (
	"context"
	"errors"
	"io"

	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// CheckLabels finds everything that is wrong with labels: job and instance are needed, resource is taken.
func CheckLabels(labels map[string]string) error { return push.CheckLabels(labels) }

// CheckNamespace tells what is wrong with the prefix of all names.
func CheckNamespace(name string) error { return gather.CheckNamespace(name) }

// OpenMetrics writes the samples in the OpenMetrics text format, as promtool tsdb create-blocks-from openmetrics takes
// them. It reads the log once for each metric, and takes bounded memory: where there are more than two hundred thousand
// samples of a metric, a series comes in several parts, one after the other in time. What is written is good only if
// there is no error.
func (g *Gap) OpenMetrics(ctx context.Context, w io.Writer, labels map[string]string) (Scan, error) {
	const together = 200_000 // some tens of megabytes
	if err := CheckLabels(labels); err != nil {
		return Scan{}, err
	}
	found, err := g.scan(ctx) // also, where to stop: a log may be being written
	if err != nil {
		return found, err
	}
	var pages text.Pages
	if found.First.IsZero() {
		_, err := io.WriteString(w, text.End)
		return found, err
	}
	for _, metric := range seconds.Logged(g.namespace()) {
		page := &streamed{Page: pages.Get(text.OpenMetrics), w: w}
		err := g.emit(ctx, metric, found.Last, together, push.NewLabelled(page, labels))
		page.write()
		if err := errors.Join(page.err, err); err != nil {
			return found, err
		}
		pages.Put(page.Page)
	}
	_, err = io.WriteString(w, text.End)
	return found, err
}

// streamed is a page of one family that is written while it is made.
type streamed struct {
	*text.Page
	w   io.Writer
	err error
}

// Series implements seconds.Sink.
func (s *streamed) Series(f *table.Family, names, values []string) {
	const enough = 1000
	if s.Samples() >= enough {
		s.write()
	}
	s.Page.Series(f, names, values)
}

func (s *streamed) write() {
	if s.err == nil {
		_, s.err = s.WriteTo(s.w)
	}
	s.Forget()
}
