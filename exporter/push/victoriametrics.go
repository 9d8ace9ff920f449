package push

import (
	"io"
	"net/http"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// VictoriaMetrics is the import endpoint /api/v1/import/prometheus of VictoriaMetrics, vminsert or vmagent: text with
// gzip. Histograms have vmrange buckets, with one sample for each non-empty bucket and two more.
var VictoriaMetrics Format = victoriaMetrics{}

type victoriaMetrics struct{ plain }

func (victoriaMetrics) name() string { return "vm" }

// prepare also sets the time of a line without a timestamp to 1970, so that VictoriaMetrics drops the line. When a
// request breaks off, for example because the process is killed, VictoriaMetrics treats the rest of a line as a
// complete line, and by default gives it the current time. A timestamp with a missing end is in 1975 or before. The
// rest of a line is therefore stored only by servers that keep samples for half a century.
func (victoriaMetrics) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Content-Encoding", "gzip")
	if query := r.URL.Query(); !query.Has("timestamp") {
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&timestamp=1", "&")
	}
}

// group returns one group for all families, because histograms are encoded as ordinary samples.
func (victoriaMetrics) group(*table.Family) group { return values }

func (victoriaMetrics) encoder() encoder {
	e := &textEncoder{Page: new(text.Pages).Get(text.VictoriaMetrics)}
	e.QuoteNames()
	return e
}

// textEncoder encodes a request as text.
type textEncoder struct {
	*text.Page
	zipped
}

// Body implements encoder.
func (e *textEncoder) Body() []byte {
	return e.zip(func(w io.Writer) { _, _ = e.WriteTo(w) })
}
