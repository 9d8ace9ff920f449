package verify

import (
	"errors"
	"io"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/push"
)

// writeOpenMetrics writes what emit gives to the Sink in OpenMetrics format, for promtool tsdb create-blocks-from openmetrics, and
// returns how many samples. What is long is several pages, in which families and series come again with later seconds, so that memory is
// bounded; promtool takes them for one.
func writeOpenMetrics(w io.Writer, labels map[string]string, emit func(seconds.Sink) error) (samples int64, err error) {
	x := &pages{w: w}
	x.Page = x.pool.Get(text.OpenMetrics)
	err = emit(push.NewLabelled(x, labels))
	if x.write(); err == nil && x.err == nil {
		_, err = io.WriteString(w, text.End)
	}
	return x.samples, errors.Join(err, x.err)
}

// pages is a Sink that writes a page whenever it is long enough.
type pages struct {
	*text.Page
	pool    text.Pages
	w       io.Writer
	samples int64
	err     error
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
	if x.err == nil {
		_, x.err = x.WriteTo(x.w)
	}
	x.pool.Put(x.Page)
	x.Page = x.pool.Get(text.OpenMetrics)
}
