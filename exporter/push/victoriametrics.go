package push

import (
	"io"
	"net/http"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// VictoriaMetrics is the import endpoint of VictoriaMetrics, vminsert or vmagent, /api/v1/import/prometheus: text with gzip.
// Histograms have buckets by vmrange, a sample for each that is not empty, and two more.
var VictoriaMetrics Format = victoriaMetrics{}

type victoriaMetrics struct{ plain }

func (victoriaMetrics) name() string { return "vm" }

// prepare also says which time a line without a timestamp has: 1970, which is dropped. VictoriaMetrics takes the rest of a line for
// a line when a request breaks off, as when the process is killed, and by default gives it the present. A timestamp that has lost its
// end is of 1975 or before, so the rest is stored only where samples are kept for half a century.
func (victoriaMetrics) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Content-Encoding", "gzip")
	if query := r.URL.Query(); !query.Has("timestamp") {
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&timestamp=1", "&")
	}
}

// group is one for all: histograms are samples like others.
func (victoriaMetrics) group(*table.Family) group { return values }

func (victoriaMetrics) encoder() encoder {
	return &textEncoder{Page: new(text.Pages).Get(text.VictoriaMetrics)}
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
