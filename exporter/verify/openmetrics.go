package verify

import (
	"errors"
	"io"
	"os"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/push"
)

// writeOpenMetrics writes what emit gives to the Sink in OpenMetrics format, for promtool tsdb create-blocks-from openmetrics, and
// returns how many samples. Each family is collected in a temporary file, so memory is bounded. A series may come in several parts, in
// order of time.
func writeOpenMetrics(w io.Writer, labels map[string]string, emit func(seconds.Sink) error) (samples int64, err error) {
	x := &families{files: map[string]*familyFile{}}
	err = emit(push.NewLabelled(x, labels))
	for _, f := range x.order {
		f.write()
		samples += f.samples
		if _, e := f.file.Seek(0, io.SeekStart); err == nil && f.err == nil {
			_, err = io.Copy(w, f.file)
			err = errors.Join(e, err)
		}
		err = errors.Join(err, f.err, f.file.Close(), os.Remove(f.file.Name()))
	}
	if err == nil {
		_, err = io.WriteString(w, text.End)
	}
	return samples, err
}

// families is a Sink with a file for each family.
type families struct {
	*familyFile // that of the present series
	pages       text.Pages
	files       map[string]*familyFile
	order       []*familyFile
}

// familyFile is the page of a family that is written to a file while it is made.
type familyFile struct {
	*text.Page
	file    *os.File
	samples int64
	err     error
}

// Series implements seconds.Sink.
func (x *families) Series(f *table.Family, names, values []string) {
	const maxSamples = 1000
	x.familyFile = x.files[f.Name]
	if x.familyFile == nil {
		x.familyFile = &familyFile{Page: x.pages.Get(text.OpenMetrics)}
		x.file, x.familyFile.err = os.CreateTemp("", "windowstat-")
		x.files[f.Name], x.order = x.familyFile, append(x.order, x.familyFile)
	}
	if x.Samples() >= maxSamples {
		x.write()
	}
	x.Page.Series(f, names, values)
}

func (f *familyFile) write() {
	f.samples += int64(f.Samples())
	if f.err == nil {
		_, f.err = f.WriteTo(f.file)
	}
	f.Forget()
}
