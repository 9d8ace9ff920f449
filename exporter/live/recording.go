package live

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Recording holds past seconds, such as the seconds of a metric log, for a page that is a single file and opens without
// a server or a network. The page has the charts and the table of [Page], but covers the whole recording instead of the
// last minutes.
type Recording struct {
	// Title is the page's title, "windowstat" if empty.
	Title string `json:"-"`
	// Above is HTML that appears above the charts, unescaped. The caller must escape untrusted text in it.
	Above template.HTML `json:"-"`
	// First is the Unix time of the first second.
	First int64 `json:"first"`
	// Seconds is the number of seconds, at least 1.
	Seconds int `json:"-"`
	// Offset is the offset from UTC of the times that the page shows, in any browser.
	Offset time.Duration `json:"offset"`
	// Total counts all inbound calls.
	Total Recorded `json:"total"`
	// Resources are the rows of the table. Their names must be unique.
	Resources []Recorded `json:"resources"`
}

// Recorded holds the seconds of one resource, or of the total. Each list has a number for each second of the recording.
type Recorded struct {
	Name string `json:"name"`
	// The following lists hold columns of the metric log. RT is the average response time in microseconds, or -1 for a
	// second without completed calls.
	Pass        []int64 `json:"pass"`
	Block       []int64 `json:"block"`
	Complete    []int64 `json:"complete"`
	Exception   []int64 `json:"exception"`
	RT          []int64 `json:"rt_avg"`
	InFlightMax []int64 `json:"in_flight_max"`
	// Limits appear in the charts of the resource.
	Limits []collector.Limit `json:"limits"`
	// Troubles appear in the table, ascending.
	Troubles []RecordedTrouble `json:"troubles,omitempty"`
}

// RecordedTrouble describes a period in which a resource was in trouble. The table shows the worst trouble in the
// seconds of the charts.
type RecordedTrouble struct {
	// First and End are the index of the first second, and the index after the last one.
	First int `json:"first"`
	End   int `json:"end"`
	// Rank compares troubles. A higher one is worse.
	Rank float64 `json:"rank"`
	// Kind is above 0. It marks the row.
	Kind int `json:"kind"`
	// Text describes the trouble.
	Text string `json:"text"`
}

// assetTag matches the tag of a script or a style sheet in index.html.
var assetTag = regexp.MustCompile(`<script defer src="([\w.]+)"></script>|<link rel="stylesheet" href="([\w.]+)">`)

// WriteHTML writes the page. It builds the page in memory: the numbers take about 20 bytes for each second of a
// resource, and two or three bytes in the page. The page's Content-Security-Policy allows only its own scripts, by
// their hashes.
func (r *Recording) WriteHTML(w io.Writer) error {
	o := Options{Title: r.Title}
	o.defaults()
	allowed := ""
	page := assetTag.ReplaceAllStringFunc(index(o, "recorded", r.Seconds, string(r.Above)), func(tag string) string {
		m := assetTag.FindStringSubmatch(tag)
		body := asset(m[1] + m[2]) // one of them is empty
		if m[2] != "" {
			return "<style>" + body + "</style>"
		}
		sum := sha256.Sum256([]byte(body))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		return "<script>" + body + "</script>"
	})
	const charset, end = `<meta charset="utf-8">`, "</html>"
	policy := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; ` +
		`img-src data:; base-uri 'none'; form-action 'none'; script-src` + allowed + `">`
	_, err := strings.NewReplacer(
		charset, charset+policy, end, `<script type="text/plain" id="recording">`+r.pack()+"</script>\n"+end,
	).WriteString(w, page)
	return err
}

// pack returns the recording as JSON, compressed with gzip and encoded in base64. Base64 cannot contain the end tag of
// a script.
func (r *Recording) pack() string {
	var b bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &b)
	zip, _ := gzip.NewWriterLevel(text, gzip.BestCompression)
	_ = errors.Join(json.NewEncoder(zip).Encode(r), zip.Close(), text.Close()) // writes to memory; cannot fail
	return b.String()
}
