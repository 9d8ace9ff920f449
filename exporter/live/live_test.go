package live_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// message is the JSON of an event or of a poll.
type message struct {
	After            string
	Process, At, Now int64
	Inbound, Fresh   bool
	Columns          []string
	Total, Resource  [][]int64
	Age              int64
	Running          []struct {
		Resource, Origin, Entrance string
		Count                      int
		Traces                     []string
		Since                      int64
	}
	Alarm struct {
		Before, After string
		Since         int64
		List          []struct {
			Resource, Words string
			Since           int64
		}
	}
	Details map[string][]struct {
		Name                  string
		Pass, Block, Complete int64
	}
	Table struct {
		First, End         int64
		Resources, Matches int
		Rows               []struct {
			N       int64
			V, Past []int64
			Name    string
			Trouble string
			Kind    int
		}
	}
}

// names returns the names of the rows that the last message did not have.
func (m message) names() (list []string) {
	for _, x := range m.Table.Rows {
		if x.Name != "" {
			list = append(list, x.Name)
		}
	}
	return list
}

// rows returns the rows of the table, each with its number and its values.
func (m message) rows() (list [][]int64) {
	for _, x := range m.Table.Rows {
		list = append(list, append([]int64{x.N}, x.V...))
	}
	return list
}

// newPage returns a Page, its Collector, and the time of the Collector.
func newPage(t *testing.T, o live.Options) (*live.Page, *collector.Collector, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, c, &now
}

func get(t *testing.T, p *live.Page, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec
}

// poll returns the message after a position.
func poll(t *testing.T, p *live.Page, after string, parameters ...string) message {
	t.Helper()
	rec := get(t, p, "/live/seconds?after="+after+"&"+strings.Join(parameters, "&"))
	var m message
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	return m
}

// The files of the page load nothing from other hosts, and are small. The title is escaped.
func TestFiles(t *testing.T) {
	p, _, _ := newPage(t, live.Options{Title: `<b>"&`})
	size := 0
	for _, name := range []string{
		"", "app.js", "chart.js", "data.js", "follow.js", "table.js", "app.css", "uPlot.iife.min.js", "uPlot.min.css",
	} {
		r := httptest.NewRequest("GET", "/any/where/"+name, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		size += rec.Body.Len()
		z, err := gzip.NewReader(rec.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		csp := rec.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", name, csp)
		}
		if name != "" {
			continue
		}
		page := string(b)
		escaped := strings.Contains(page, "<title>&lt;b&gt;&#34;&amp;</title>") && !strings.Contains(page, "<b>")
		if !escaped || strings.Contains(page, "http") {
			t.Errorf("%s", page)
		}
	}
	if size > 100_000 {
		t.Errorf("the page has %d bytes, want at most 100,000", size)
	}
	if rec := get(t, p, "/live/nothing"); rec.Code != http.StatusNotFound {
		t.Error(rec.Code)
	}
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, httptest.NewRequest("POST", "/live/", nil))
	if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Content-Security-Policy") == "" {
		t.Error(rec.Code, rec.Header())
	}
}

// The error of New names every invalid option.
func TestInvalidOptions(t *testing.T) {
	if _, err := live.New(nil, live.Options{MaxViewers: -1, MaxRows: -1}); err == nil ||
		strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}
