package prom_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

// scraper requests a per-second page from an address.
type scraper struct {
	t    testing.TB
	page *prom.Seconds
	host string
}

func newScraper(t testing.TB, c *collector.Collector, o prom.SecondsOptions) scraper {
	t.Helper()
	page, err := prom.NewSeconds(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return scraper{t, page, "10.0.0.1"}
}

// get returns a response without the runs, which every page has. Use [scraper.whole] for a response with them.
func (r scraper) get(query string) *httptest.ResponseRecorder {
	rec := r.whole(query)
	if body := rec.Body.String(); strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain") {
		const run = "windowstat_persecond_run "
		rec.Body = new(bytes.Buffer)
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), run) {
				rec.Body.WriteString(line)
			}
		}
	}
	return rec
}

func (r scraper) whole(query string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("GET", "/metrics/seconds?"+query, nil)
	req.RemoteAddr = r.host + ":12345"
	rec := httptest.NewRecorder()
	r.page.ServeHTTP(rec, req)
	return rec
}

// seconds returns the values of one metric by resource and Unix second. A duplicate second is an error.
func (r scraper) seconds(query, metric string) map[string]float64 {
	r.t.Helper()
	rec := r.get(query)
	if rec.Code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", query, rec.Code, rec.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(rec.Body.String()) {
		rest, ok := strings.CutPrefix(line, "windowstat_"+metric+`{resource="`)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, `"} `)
		value, stamp, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(value, 64)
		second, ok := strings.CutSuffix(stamp, "000")
		if err != nil || !ok {
			r.t.Fatalf("line %q", line)
		}
		key := name + " " + second
		if _, twice := all[key]; twice {
			r.t.Fatalf("duplicate %s", key)
		}
		all[key] = v
	}
	return all
}

func TestSecondsPage(t *testing.T) {
	c, now := service(t, collector.Options{})
	r := c.Resource("a")
	for _, rt := range []time.Duration{2 * ms, 5 * ms} {
		e := r.Enter()
		*now = now.Add(rt)
		e.Exit(nil)
	}
	r.Enter()
	*now = now.Add(2 * time.Second)
	const want = `# HELP windowstat_persecond_pass Calls admitted in this second.
# TYPE windowstat_persecond_pass gauge
windowstat_persecond_pass{resource="a"} 3 1767323045000
windowstat_persecond_pass{resource="a"} 0 1767323046000
# HELP windowstat_persecond_in_flight Calls in flight when the second ended.
# TYPE windowstat_persecond_in_flight gauge
windowstat_persecond_in_flight{resource="a"} 1 1767323045000
windowstat_persecond_in_flight{resource="a"} 1 1767323046000
# HELP windowstat_persecond_rt_min_seconds Shortest response time in this second. Absent if no call ended.
# TYPE windowstat_persecond_rt_min_seconds gauge
windowstat_persecond_rt_min_seconds{resource="a"} 0.002 1767323045000
`
	read := newScraper(t, c, prom.SecondsOptions{})
	query := "metric=windowstat_persecond_pass&metric=persecond_in_flight&metric=persecond_rt_min_seconds"
	if got := read.get(query).Body.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	req := httptest.NewRequest("GET", "/?"+query, nil)
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	rec := httptest.NewRecorder()
	read.page.ServeHTTP(rec, req)
	if body := rec.Body.String(); !strings.Contains(
		body,
		"windowstat_persecond_pass{resource=\"a\"} 3.0 1767323045\n",
	) ||
		!strings.HasSuffix(body, "\n# EOF\n") {
		t.Errorf("OpenMetrics:\n%s", body)
	}
	rec = read.get("")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(rec.Body)
	if err != nil || len(families) != len(table.Seconds()) {
		t.Errorf("%d families, %v", len(families), err)
	}
}

// A scraper gets every second of every resource once, with the value of its record, at any interval, through partial
// responses and failed requests, and independently of other scrapers.
func TestCursor(t *testing.T) {
	c, now := service(t, collector.Options{})
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: 600})
	other := scraper{t, read.page, "10.0.0.2"}
	got, theirs := map[string]float64{}, map[string]float64{}
	collect := func(into map[string]float64, from map[string]float64) (n int) {
		for k, v := range from {
			if _, twice := into[k]; twice {
				t.Fatalf("duplicate %s", k)
			}
			into[k] = v
			n++
		}
		return n
	}
	want := map[string]float64{}
	names := []string{"a", "b", "c"}
	for i := range 500 {
		for k, name := range names {
			if k == 2 && i < 100 {
				continue // c is created later
			}
			c.Resource(name) // creates the resource, which then has seconds
			for range (i * (k + 1)) % 7 {
				e := c.Resource(name).Enter()
				e.Exit(nil)
			}
			want[fmt.Sprint(name, " ", now.Unix())] = float64((i * (k + 1)) % 7)
		}
		*now = now.Add(time.Second)
		switch {
		case i < 50: // every second at first
			collect(got, read.seconds("cursor=p", "persecond_pass"))
		case i%15 == 0 && i < 200 || i%100 == 99:
			collect(got, read.seconds("cursor=p", "persecond_pass"))
		}
		if i%40 == 0 {
			broken := httptest.NewRequest("GET", "/?cursor=p", nil)
			broken.RemoteAddr = "10.0.0.1:1"
			read.page.ServeHTTP(&brokenWriter{header: http.Header{}}, broken) // must not advance the cursor
			read.get("cursor=p&window=5s")
			read.get("cursor=q")
			collect(theirs, other.seconds("cursor=p", "persecond_pass"))
		}
	}
	for collect(got, read.seconds("cursor=p", "persecond_pass")) > 0 {
	}
	for collect(theirs, other.seconds("cursor=p", "persecond_pass")) > 0 {
	}
	for k, v := range want {
		if got[k] != v || theirs[k] != v {
			t.Errorf("%s: %v and %v, want %v", k, got[k], theirs[k], v)
		}
	}
	if len(got) != len(want) || len(theirs) != len(want) {
		t.Errorf("%d and %d seconds, want %d", len(got), len(theirs), len(want))
	}
	// A scraper with another filter has a separate position.
	read.get("cursor=p&resource=c") // the resource c did not exist in its first seconds
	read.get("cursor=p&resource=c")
	if n := len(read.seconds("cursor=p&resource=c", "persecond_pass")); n == 0 {
		t.Error("no seconds for another filter")
	}
}

// brokenWriter is a client that disconnects.
type brokenWriter struct{ header http.Header }

func (b *brokenWriter) Header() http.Header       { return b.header }
func (b *brokenWriter) WriteHeader(int)           {}
func (b *brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A response has at most MaxSamples but at least one second. A scraper that paused catches up.
func TestResponsesAreBounded(t *testing.T) {
	c, now := service(t, collector.Options{})
	for i := range 10 {
		c.Resource(fmt.Sprint(i)).Enter() // never idle
	}
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: (10*len(table.Seconds()) + 1) * 7})
	small := newScraper(t, c, prom.SecondsOptions{MaxSamples: 1})
	*now = now.Add(100 * time.Second)
	for i := range 20 {
		n := len(read.seconds("cursor=a", "persecond_pass")) / 10
		if want := min(7, max(100-7*i, 0)); n != want {
			t.Fatalf("response %d has %d seconds, want %d", i, n, want)
		}
	}
	if n := len(small.seconds("cursor=a", "persecond_pass")); n != 10 {
		t.Errorf("%d samples, want one second of ten resources", n)
	}
}

// Seconds dropped before a scraper fetched them are counted as lost.
func TestLossOfACursorIsCounted(t *testing.T) {
	c, now := service(t, collector.Options{Windows: node.Options{History: time.Minute}, RetireAfter: -1})
	read := newScraper(t, c, prom.SecondsOptions{})
	c.Resource("a").Block("")
	*now = now.Add(10 * time.Second)
	read.get("cursor=a")
	*now = now.Add(90 * time.Second)
	if n := len(read.seconds("cursor=a", "persecond_pass")); n != 60 {
		t.Errorf("%d seconds", n)
	}
	*now = now.Add(5 * time.Second)
	got := read.page.Counts()
	for name, want := range map[string]float64{
		"lag_seconds": 5, "lost_seconds_total": 30, "resent_seconds_total": 0,
		"delivered_seconds_total": 70, "unconfirmed_seconds_total": 70, // no connection proves the delivery
	} {
		if v, ok := got["cursor_"+name+"[10.0.0.1 a]"]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", name, v, ok, want)
		}
	}
}

// Requests with one cursor are served one after the other. Together they return every second once.
func TestConcurrentRequestsOfOneCursor(t *testing.T) {
	c, now := service(t, collector.Options{})
	read := newScraper(t, c, prom.SecondsOptions{MaxSamples: 50})
	c.Resource("a").Enter() // never idle
	*now = now.Add(200 * time.Second)
	var mu sync.Mutex
	var stamps []string
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			part := read.seconds("cursor=a", "persecond_block")
			mu.Lock()
			defer mu.Unlock()
			for k := range part {
				stamps = append(stamps, k)
			}
		})
	}
	wg.Wait()
	slices.Sort(stamps)
	if n := len(slices.Compact(slices.Clone(stamps))); n != 200 || len(stamps) != 200 {
		t.Errorf("%d seconds, %d of them distinct, want 200", len(stamps), n)
	}
}

func TestWindow(t *testing.T) {
	c, now := service(t, collector.Options{})
	read := newScraper(t, c, prom.SecondsOptions{})
	c.Resource("a").Block("")
	*now = now.Add(300 * time.Second)
	for query, want := range map[string]int{
		"": 60, "window=1s": 1, "window=2m": 120, "window=10m": 300,
		"window=60000ms": 60, "resource=b": 0, "resource=a&resource=b": 60,
	} {
		for range 2 { // repeated requests return the same
			if n := len(read.seconds(query, "persecond_pass")); n != want {
				t.Errorf("%s: %d seconds, want %d", query, n, want)
			}
		}
	}
}

func TestBadParameters(t *testing.T) {
	c, _ := service(t, collector.Options{})
	read := newScraper(t, c, prom.SecondsOptions{MaxCursors: 3})
	for query, want := range map[string][]string{
		"cursor=":                           {"cursor is"},
		"cursor=a%20b":                      {"cursor is"},
		"cursor=" + strings.Repeat("x", 65): {"cursor is"},
		"cursor=a&cursor=b":                 {"cursor is given 2 times"},
		"cursor=a&window=5s":                {"exclude each other"},
		"window=0s":                         {`window is "0s"`},
		"window=-5s":                        {"window is"},
		"window=5":                          {"window is"},
		"window=1500ms":                     {"window is"},
		"window=11m":                        {"whole seconds from 1s to 10m0s"},
		"window=":                           {"window is"},
		"metric=x":                          {`unknown metric "x"`},
		"range=5":                           {`unknown parameter "range"`},
		"a=%zz":                             {"malformed query"},
		"window=x&metric=y&cursor=!&nothing=1": {
			"window is", `unknown metric "y"`, "cursor is",
			`unknown parameter "nothing"`,
		},
	} {
		rec := read.get(query)
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, rec.Code)
		}
		for _, part := range want {
			if !strings.Contains(rec.Body.String(), part) {
				t.Errorf("%s: the response does not contain %q: %s", query, part, rec.Body)
			}
		}
	}
	if _, err := prom.NewSeconds(nil, prom.SecondsOptions{
		Namespace: "1", MaxSamples: -1, MaxCursors: -1,
		CursorExpiry: time.Minute,
	}); err == nil ||
		strings.Count(err.Error(), "\n") != 4 {
		t.Error(err)
	}
}

// A response has at most MaxBytes. VictoriaMetrics silently discards responses above 16 MiB.
func TestResponsesAreBoundedInBytes(t *testing.T) {
	c, now := service(t, collector.Options{})
	for i := range 1000 {
		c.Resource(fmt.Sprintf("GET /a/rather/\"long\"/path/that/somebody/made/up/for/his/service/%04d", i)).Block("")
	}
	*now = now.Add(60 * time.Second)
	for _, tc := range []struct {
		options prom.SecondsOptions
		agent   string
		query   string
		most    int
	}{
		{prom.SecondsOptions{MaxSamples: 10_000_000}, "vm_promscrape", "", 15 << 20},
		{prom.SecondsOptions{MaxSamples: 10_000_000}, "vm_promscrape", "&histogram=classic", 15 << 20},
		{prom.SecondsOptions{MaxSamples: 10_000_000}, "Prometheus/3.15", "", 64 << 20},
		{prom.SecondsOptions{MaxBytes: 5 << 20}, "vm_promscrape", "", 5 << 20},
		{prom.SecondsOptions{MaxBytes: 5 << 20}, "Prometheus/3.15", "&histogram=classic", 5 << 20},
		{prom.SecondsOptions{MaxBytes: 5 << 20}, "Prometheus/3.15", "&histogram=native", 5 << 20},
	} {
		if testing.Short() && tc.most > 20<<20 {
			continue
		}
		page, err := prom.NewSeconds(c, tc.options)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/?cursor=a"+tc.query, nil)
		r.Header.Set("User-Agent", tc.agent)
		if strings.Contains(tc.query, "native") {
			r.Header.Set("Accept", wantsProtobuf)
		}
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, r)
		if n := rec.Body.Len(); n > tc.most || n < tc.most*2/5 {
			t.Errorf("%+v: %d bytes", tc, n)
		}
	}
}
