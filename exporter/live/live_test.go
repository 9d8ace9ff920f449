package live_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// message is what a viewer gets.
type message struct {
	Epoch   int64
	First   int
	Fresh   bool
	Inbound bool
	Columns []string
	Names   []string
	Seconds [][2]json.RawMessage
}

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

func poll(t *testing.T, p *live.Page, after string) message {
	t.Helper()
	rec := get(t, p, "/live/seconds?after="+after)
	var m message
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	return m
}

// The page loads nothing from other hosts, and is small.
func TestFiles(t *testing.T) {
	p, _, _ := newPage(t, live.Options{Title: `<b>"&`})
	size := 0
	for _, name := range []string{"", "app.js", "chart.js", "data.js", "follow.js", "table.js", "app.css", "uPlot.iife.min.js", "uPlot.min.css"} {
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
		if csp := rec.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", name, csp)
		}
		if name != "" {
			continue
		}
		if page := string(b); strings.Contains(page, "<b>") || !strings.Contains(page, "<title>&lt;b&gt;&quot;&amp;</title>") || strings.Contains(page, "http") {
			t.Errorf("%s", page)
		}
	}
	if size > 100_000 {
		t.Errorf("the page has %d bytes", size)
	}
	if rec := get(t, p, "/live/nothing"); rec.Code != http.StatusNotFound {
		t.Error(rec.Code)
	}
	rec := httptest.NewRecorder()
	if p.ServeHTTP(rec, httptest.NewRequest("POST", "/live/", nil)); rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Content-Security-Policy") == "" {
		t.Error(rec.Code, rec.Header())
	}
}

// Each viewer gets each second once, with the names that it lacks, from any position.
func TestSecondsOfViewers(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	hostile := "<script>alert(1)</script>\n\"\xff"
	c.Resource("a").Block("")
	*now = now.Add(time.Second)
	first := poll(t, p, "")
	const columns = "[pass block complete exception in_flight_max rt_avg rt_p99]"
	if !first.Fresh || fmt.Sprint(first.Columns) != columns || fmt.Sprint(first.Names) != "[ a]" || len(first.Seconds) != 1 || string(first.Seconds[0][1]) != "[[-1,0,1,0,0,-1,-1,-1],[1,0,1,0,0,0,-1,-1]]" {
		t.Errorf("%+v %s", first, first.Seconds)
	}
	e := c.Resource(hostile).Enter()
	*now = now.Add(20 * time.Millisecond)
	e.Exit(nil)
	*now = now.Add(2 * time.Second)
	at := fmt.Sprintf("%s-%d-%d", first.Seconds[0][0], first.Epoch, len(first.Names))
	second := poll(t, p, at)
	if second.Fresh || second.Columns != nil || second.First != 2 || len(second.Names) != 1 || second.Names[0] != collector.CleanName(hostile) || len(second.Seconds) != 2 ||
		string(second.Seconds[0][1]) != "[[-1,1,0,1,0,-1,20000,-1],[2,1,0,1,0,1,20000,20000]]" || string(second.Seconds[1][1]) != "[]" {
		t.Errorf("%+v %s", second, second.Seconds)
	}
	// Another process numbers otherwise, and may have other columns.
	if other := poll(t, p, fmt.Sprintf("%s-%d-%d", first.Seconds[0][0], first.Epoch+1, len(first.Names))); !other.Fresh || fmt.Sprint(other.Columns) != columns || len(other.Names) != 3 || len(other.Seconds) != 3 {
		t.Errorf("%+v", other)
	}
	for _, wrong := range []string{"x", "1", "1-2", "1-2-3-4", "1-2-x", strings.Repeat("1", 100), "-1--2--3x"} {
		if rec := get(t, p, "/live/seconds?after="+wrong); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", wrong, rec.Code)
		}
	}
	if m := poll(t, p, fmt.Sprintf("0-%d--5", first.Epoch)); !m.Fresh {
		t.Errorf("%+v", m)
	}
}

// Histograms are kept for less long than seconds are shown.
func TestQuantileOfADroppedHistogram(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	e := c.Resource("a").Enter()
	*now = now.Add(20 * time.Millisecond)
	e.Exit(nil)
	*now = now.Add(100 * time.Second)
	m := poll(t, p, "")
	if got, want := string(m.Seconds[0][1]), "[[-1,1,0,1,0,-1,20000,-1],[1,1,0,1,0,1,20000,-1]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The total is of inbound calls, whatever they call in turn, and is there however busy the resources are. A second
// before the first of them has the sum of its rows, which a viewer then drops: nobody says that the server was started again.
func TestTotal(t *testing.T) {
	p, c, now := newPage(t, live.Options{MaxRows: 1})
	c.Resource("warm up").Block("")
	*now = now.Add(time.Second)
	first := poll(t, p, "")
	if first.Inbound || string(first.Seconds[0][1]) != "[[-1,0,1,0,0,-1,-1,-1],[1,0,1,0,0,0,-1,-1]]" {
		t.Errorf("before: %+v %s", first, first.Seconds)
	}
	_ = c.Do(t.Context(), "request", func(ctx context.Context) error {
		for range 5 {
			_ = c.Do(ctx, "query", func(context.Context) error { return nil }, collector.Outbound())
		}
		return nil
	}, collector.Inbound())
	*now = now.Add(time.Second)
	m := poll(t, p, fmt.Sprintf("%s-%d-%d", first.Seconds[0][0], first.Epoch, len(first.Names)))
	if !m.Inbound || m.Fresh || len(m.Seconds) != 1 || !strings.HasPrefix(string(m.Seconds[0][1]), "[[0,1,0,1,0,1,0,0],[3,5,") {
		t.Errorf("after: %+v %s", m, m.Seconds)
	}
}

// Of too many busy resources the busiest are shown.
func TestBusiestRows(t *testing.T) {
	p, c, now := newPage(t, live.Options{MaxRows: 3})
	for i := range 10 {
		for range i + 1 {
			c.Resource(fmt.Sprint("r", i)).Block("")
		}
	}
	*now = now.Add(time.Second)
	m := poll(t, p, "")
	if got, want := string(m.Seconds[0][1]), "[[-1,0,55,0,0,-1,-1,-1],[10,0,10,0,0,0,-1,-1],[9,0,9,0,0,0,-1,-1],[8,0,8,0,0,0,-1,-1]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDetailsOfAResource(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	for range 3 { // it calls itself, too
		ctx, e, err := c.Enter(t.Context(), "a", collector.Origin("mobile"), collector.Entrance("http"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, inner, _ := c.Enter(ctx, "b")
		_, again, _ := c.Enter(ctx, "a")
		*now = now.Add(time.Millisecond)
		again.Exit(nil)
		inner.Exit(nil)
		e.Exit(nil)
	}
	c.Block(t.Context(), "b", "because")
	*now = now.Add(time.Second)
	rec := get(t, p, "/live/resource?name=b")
	want := `"origins":[{"name":"","pass":0,"block":1},{"name":"mobile","pass":3,"block":0}],"callers":[{"name":"_default","pass":0,"block":1},{"name":"http › a","pass":3,"block":0}],"blocks":[{"name":"because","pass":0,"block":1}]}`
	if !strings.HasSuffix(rec.Body.String(), want) {
		t.Errorf("%s\nwant %s", rec.Body, want)
	}
	if rec := get(t, p, "/live/resource?name=c"); rec.Code != http.StatusNotFound {
		t.Error(rec.Code)
	}
	if rec := get(t, p, "/live/resource"); rec.Code != http.StatusNotFound {
		t.Error(rec.Code, rec.Body)
	}
}

// A resource for names beyond the limits is one as any other, and so is a place of the call tree below which calls are not
// shown.
func TestDetailsOfTheOverflow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, MaxResources: 3, MaxDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c", "beyond"} { // the last ones are too deep for the tree
		inner, e, err := c.Enter(ctx, name, collector.Origin("mobile"), collector.Entrance("http"))
		if err != nil {
			t.Fatal(err)
		}
		ctx = inner
		defer e.Exit(nil)
	}
	c.Block(t.Context(), "further beyond", "", collector.Entrance("http"))
	cut := false
	var walk func(*collector.TreeNode)
	walk = func(at *collector.TreeNode) {
		for _, child := range at.Children() {
			cut = cut || child.Name() == collector.Other && child.View().Node() == nil
			walk(child)
		}
	}
	if walk(c.Tree()); !cut {
		t.Fatal("the whole tree is shown")
	}
	now = now.Add(time.Second)
	rec := get(t, p, "/live/resource?name="+collector.Other)
	const want = `"origins":[{"name":"","pass":0,"block":1},{"name":"mobile","pass":1,"block":0}],"callers":[{"name":"http","pass":1,"block":1}],`
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), want) {
		t.Errorf("%d %s\nwant %s", rec.Code, rec.Body, want)
	}
}

// A stream resumes after an interruption, is rejected when there are too many, and ends when the page is closed.
func TestStream(t *testing.T) {
	for name, plain := range map[string]bool{"plain": true, "gzip": false} {
		t.Run(name, func(t *testing.T) { testStream(t, plain) })
	}
}

func testStream(t *testing.T, plain bool) {
	t.Parallel()
	client := &http.Client{Transport: &http.Transport{DisableCompression: plain}}
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{MaxViewers: 1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close() // or it would wait for the streams
	c.Resource("a").Block("")
	open := func(id string) (*http.Response, *bufio.Reader) {
		r, err := http.NewRequest("GET", server.URL+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		if id != "" {
			r.Header.Set("Last-Event-ID", id)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp, bufio.NewReader(resp.Body)
	}
	next := func(b *bufio.Reader) (id string, m message) {
		for {
			line, err := b.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(rest)
			}
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(rest), &m); err != nil {
					t.Fatal(err)
				}
				return id, m
			}
		}
	}
	resp, events := open("")
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Uncompressed == plain {
		t.Error(resp.Header)
	}
	seen := map[string]bool{}
	id := ""
	for range 3 {
		var m message
		id, m = next(events)
		for _, s := range m.Seconds {
			if seen[string(s[0])] {
				t.Errorf("%s came twice", s[0])
			}
			seen[string(s[0])] = true
		}
	}
	if full, _ := open(""); full.StatusCode != http.StatusServiceUnavailable || full.Header.Get("Retry-After") == "" {
		t.Error(full.Status)
	}
	_ = resp.Body.Close()
	for range 100 { // until the place is free
		if resp, events = open(id); resp.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		_, m := next(events)
		if m.Fresh {
			t.Error("what is known is sent again")
		}
		for _, s := range m.Seconds {
			if seen[string(s[0])] {
				t.Errorf("%s came again", s[0])
			}
			seen[string(s[0])] = true
		}
	}
	p.Close()
	if _, err := io.ReadAll(events); err != nil && (plain || !errors.Is(err, io.ErrUnexpectedEOF)) {
		t.Error(err)
	}
}

// requestTimeout is how long a response may take on a busy machine.
const requestTimeout = 5 * time.Second

// A HEAD request of the stream takes no slot.
func TestHeadOfStream(t *testing.T) {
	p, _, _ := newPage(t, live.Options{MaxViewers: 1})
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close()                                 // or it would wait for the streams
	client := &http.Client{Timeout: requestTimeout} // a stream that goes on holds up what comes after it
	for range 3 {
		resp, err := client.Head(server.URL + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Error(resp.Status, resp.Header)
		}
	}
}

// Viewers with the same position share messages.
func TestViewersShare(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	defer p.Close()
	const viewers, events = 20, 4
	seen := make([]string, viewers)
	var all sync.WaitGroup
	for i := range viewers {
		all.Go(func() {
			c.Resource(fmt.Sprint("r", i)).Block("")
			client := &http.Client{Transport: &http.Transport{DisableCompression: i%2 == 0}}
			resp, err := client.Get(server.URL + "/stream")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 1<<20)
			for n := 0; n < events && lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					n++
					var m message
					if err := json.Unmarshal([]byte(data), &m); err != nil {
						t.Error(err)
					}
					for _, s := range m.Seconds {
						seen[i] += fmt.Sprintf("%s:%s ", s[0], s[1])
					}
				}
			}
		})
	}
	all.Wait()
	longest := slices.MaxFunc(seen, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for i, s := range seen {
		if !strings.HasPrefix(longest, s) || strings.Count(s, ":") < events-1 {
			t.Errorf("viewer %d got %q; it should be the beginning of %q", i, s, longest)
		}
	}
}

func TestMistakes(t *testing.T) {
	if _, err := live.New(nil, live.Options{MaxViewers: -1, MaxRows: -1}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}
