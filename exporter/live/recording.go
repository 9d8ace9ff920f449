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

// Recording is seconds of the past, such as those of a metric log, for a page that is one file and opens without a server or a
// network. It has the charts and the table of [Page], with all of the recording in the place of the last minutes.
type Recording struct {
	// Title is the page's title, "windowstat" if empty.
	Title string `json:"-"`
	// Above stands above the charts. It is not escaped: the caller must have escaped what strangers may have sent.
	Above template.HTML `json:"-"`
	// First is the Unix time of the first second, and Seconds how many there are, at least 1.
	First   int64 `json:"first"`
	Seconds int   `json:"-"`
	// Offset is how far the times that the page shows are ahead of UTC, wherever it is opened.
	Offset time.Duration `json:"offset"`
	// Total is all inbound calls, and Resources are those of the table. No two may have one name.
	Total     Recorded   `json:"total"`
	Resources []Recorded `json:"resources"`
}

// Recorded is the seconds of a resource. Each list has a number for each second of the recording.
type Recorded struct {
	Name string `json:"name"`
	// Pass to InFlightMax are as in the metric log; RT is the average response time in microseconds, -1 where there is none.
	Pass        []int64 `json:"pass"`
	Block       []int64 `json:"block"`
	Complete    []int64 `json:"complete"`
	Exception   []int64 `json:"exception"`
	RT          []int64 `json:"rt_avg"`
	InFlightMax []int64 `json:"in_flight_max"`
	// Limits are drawn in the charts of the resource.
	Limits []collector.Limit `json:"limits"`
}

// part is a script or a style sheet of the page.
var part = regexp.MustCompile(`<script defer src="([\w.]+)"></script>|<link rel="stylesheet" href="([\w.]+)">`)

// WriteHTML writes the page. It is made in memory: the numbers take some 20 bytes for each second of a resource, and in the page two or
// three. Only the page's own scripts are allowed to run in it, by their hashes.
func (r *Recording) WriteHTML(w io.Writer) error {
	o := Options{Title: r.Title}
	o.defaults()
	allowed := ""
	page := part.ReplaceAllStringFunc(index(o, "recorded", r.Seconds, string(r.Above)), func(tag string) string {
		m := part.FindStringSubmatch(tag)
		body := asset(m[1] + m[2])
		if m[2] != "" {
			return "<style>" + body + "</style>"
		}
		sum := sha256.Sum256([]byte(body))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		return "<script>" + body + "</script>"
	})
	const charset, end = `<meta charset="utf-8">`, "</html>"
	policy := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; ` +
		`base-uri 'none'; form-action 'none'; script-src` + allowed + `">`
	_, err := strings.NewReplacer(
		charset, charset+policy, end, `<script type="text/plain" id="recording">`+r.pack()+"</script>\n"+end,
	).WriteString(w, page)
	return err
}

// pack returns the recording as compressed JSON in base64, which has nothing that ends a script.
func (r *Recording) pack() string {
	var b bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &b)
	zip, _ := gzip.NewWriterLevel(text, gzip.BestCompression)
	_ = errors.Join(json.NewEncoder(zip).Encode(r), zip.Close(), text.Close()) // strings and numbers in memory cannot fail
	return b.String()
}
