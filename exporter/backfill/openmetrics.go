package backfill

import (
	"context"
	"errors"
	"io"

	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/push"
)

// CheckLabels returns everything that is wrong with labels: job and instance are required, resource is reserved.
func CheckLabels(labels map[string]string) error { return push.CheckLabels(labels) }

// CheckNamespace returns an error for an invalid prefix of names.
func CheckNamespace(name string) error { return gather.CheckNamespace(name) }

// OpenMetrics writes the samples in OpenMetrics format for promtool tsdb create-blocks-from openmetrics. It reads the log once
// for each metric. Memory is bounded: with more than two hundred thousand samples of a metric, a series comes in several parts,
// in order of time. After an error the output is incomplete.
func (g *Gap) OpenMetrics(ctx context.Context, w io.Writer, labels map[string]string) (Scan, error) {
	const batch = 200_000 // some tens of megabytes
	if err := CheckLabels(labels); err != nil {
		return Scan{}, err
	}
	scan, err := g.scan(ctx) // it also finds the last second: the log may still be written
	if err != nil {
		return scan, err
	}
	var pages text.Pages
	if scan.First.IsZero() {
		_, err := io.WriteString(w, text.End)
		return scan, err
	}
	for _, metric := range seconds.Logged(g.namespace()) {
		page := &streamedPage{Page: pages.Get(text.OpenMetrics), w: w}
		err := g.emit(ctx, metric, scan.Last, batch, push.NewLabelled(page, labels))
		page.write()
		if err := errors.Join(page.err, err); err != nil {
			return scan, err
		}
		pages.Put(page.Page)
	}
	_, err = io.WriteString(w, text.End)
	return scan, err
}

// streamedPage is a page of one family that is written while it is made.
type streamedPage struct {
	*text.Page
	w   io.Writer
	err error
}

// Series implements seconds.Sink.
func (s *streamedPage) Series(f *table.Family, names, values []string) {
	const maxSamples = 1000
	if s.Samples() >= maxSamples {
		s.write()
	}
	s.Page.Series(f, names, values)
}

func (s *streamedPage) write() {
	if s.err == nil {
		_, s.err = s.WriteTo(s.w)
	}
	s.Forget()
}
