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
	"math"
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
	After            string
	Process, At, Now int64
	Inbound, Fresh   bool
	Columns          []string
	Total, Resource  [][]int64
	Age              int64
	Running          []struct {
		Resource, Origin, Entrance, Trace string
		Since                             int64
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
		}
	}
}

// names are those of the rows that are new on the page of the table.
func (m message) names() (list []string) {
	for _, x := range m.Table.Rows {
		if x.Name != "" {
			list = append(list, x.Name)
		}
	}
	return list
}

// rows are the numbers of the page of the table.
func (m message) rows() (list [][]int64) {
	for _, x := range m.Table.Rows {
		list = append(list, append([]int64{x.N}, x.V...))
	}
	return list
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

func poll(t *testing.T, p *live.Page, after string, parameters ...string) message {
	t.Helper()
	rec := get(t, p, "/live/seconds?after="+after+"&"+strings.Join(parameters, "&"))
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
		if page := string(b); strings.Contains(page, "<b>") || !strings.Contains(page, "<title>&lt;b&gt;&#34;&amp;</title>") || strings.Contains(page, "http") {
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

// Each viewer gets each second once, from any position.
func TestSecondsOfViewers(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	hostile := "<script>alert(1)</script>\n\"\xff"
	c.Resource("a").Block("")
	*now = now.Add(time.Second)
	first := poll(t, p, "", "sort=pass")
	const columns = "[pass block complete exception in_flight_avg rt_avg rt_p99 exception_lately block_lately rt_usual]"
	at := first.At
	if !first.Fresh || fmt.Sprint(first.Columns) != columns || fmt.Sprint(first.names(), first.Table.Rows[0].Past) != "[a] [0]" || first.Now != (at+1)*1000 ||
		fmt.Sprint(first.Total) != fmt.Sprintf("[[%d 0 1 0 0 0 -1 -1]]", at) || fmt.Sprint(first.rows()) != "[[1 0 1 0 0 0 -1 -1 0 1 0]]" {
		t.Errorf("%+v", first)
	}
	e := c.Resource(hostile).Enter()
	*now = now.Add(20 * time.Millisecond)
	e.Exit(nil)
	*now = now.Add(980 * time.Millisecond)
	second := poll(t, p, first.After, "sort=pass")
	if second.Fresh || second.Columns != nil || fmt.Sprint(second.Total) != fmt.Sprintf("[[%d 1 0 1 0 20000 20000 20000]]", at+1) ||
		fmt.Sprint(second.rows()) != "[[2 1 0 1 0 20000 20000 20000 0 0 0] [1 0 0 0 0 0 -1 -1 0 1 0]]" || !slices.Equal(second.names(), []string{collector.CleanName(hostile), "a"}) {
		t.Errorf("%+v", second)
	}
	if again := poll(t, p, second.After); len(again.Total) != 0 || len(again.rows()) != 2 || again.At != second.At {
		t.Errorf("%+v", again)
	}
	*now = now.Add(2 * time.Second)
	third := poll(t, p, second.After, "sort=pass") // one second was missed
	if third.Fresh || len(third.Total) != 2 || fmt.Sprint(third.Table.Rows[1].Past) != "[0 0 0 0]" {
		t.Errorf("%+v", third)
	}
	// Another process has other numbers, and may have other columns.
	var parts [3]int64
	if _, err := fmt.Sscanf(third.After, "%d-%d-%d", &parts[0], &parts[1], &parts[2]); err != nil {
		t.Fatal(err)
	}
	if other := poll(t, p, fmt.Sprintf("%d-%d-%d", parts[0]+2, parts[1], parts[2])); !other.Fresh || fmt.Sprint(other.Columns) != columns || len(other.Total) != 4 {
		t.Errorf("%+v", other)
	}
	for _, wrong := range []string{"x", "1", "1-2", "1-2-3-4", "1-2-x", strings.Repeat("1", 100), "-1--2--3x"} {
		if rec := get(t, p, "/live/seconds?after="+wrong); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", wrong, rec.Code)
		}
	}
	for _, madeUp := range []string{"-1--2--3", fmt.Sprintf("%d-9223372036854775807-9223372036854775807", parts[0]), fmt.Sprintf("%d--9223372036854775808--9223372036854775808", parts[0])} {
		poll(t, p, madeUp, "had=-9223372036854775808")
	}
}

// A poll gets all that is kept of the total, and of a resource that is open; later, only what is new.
func TestPastOfTheTotalAndOfAResource(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	for i := range 700 {
		if i >= 400 {
			c.Resource("b").Block("")
		}
		c.Resource("a").Block("")
		*now = now.Add(time.Second)
	}
	m := poll(t, p, "", "resource=b")
	if len(m.Total) != 600 || m.Total[0][0] != m.At-599 || len(m.Resource) != 300 || m.Resource[0][2] != 1 || m.Resource[299][0] != m.At || fmt.Sprint(m.Total[599][1:4]) != "[0 2 0]" {
		t.Errorf("%d seconds of the total, %d of b, at %d: %d", len(m.Total), len(m.Resource), m.At, m.Resource)
	}
	had := fmt.Sprint("had=", m.At)
	c.Resource("b").Block("")
	*now = now.Add(time.Second)
	if next := poll(t, p, m.After, "resource=b", had); len(next.Total) != 1 || fmt.Sprint(next.Resource) != fmt.Sprintf("[[%d 0 1 0 0 0 -1 -1]]", next.At) {
		t.Errorf("%+v", next)
	}
	if other := poll(t, p, m.After, "resource=a"); len(other.Total) != 1 || len(other.Resource) != 600 {
		t.Errorf("%d seconds of the total, %d of a", len(other.Total), len(other.Resource))
	}
	for had, want := range map[int64]int{math.MaxInt64: 0, m.At + 1000: 0, m.At + 1: 0, m.At: 1, -1: 301, math.MinInt64: 301} {
		if next := poll(t, p, m.After, "resource=b", fmt.Sprint("had=", had)); next.Resource == nil || len(next.Resource) != want {
			t.Errorf("who had the seconds up to %d gets %d", had, len(next.Resource))
		}
	}
	if none := poll(t, p, m.After, "resource=c"); none.Resource != nil {
		t.Errorf("%+v", none)
	}
	*now = now.Add(30 * time.Second) // nobody looked
	if late := poll(t, p, m.After, "resource=b", had); len(late.Total) != 31 || len(late.Resource) != 31 {
		t.Errorf("%d seconds after the last one that was seen: %+v", len(late.Total), late)
	}
	*now = now.Add(300 * time.Second) // and the series began anew
	if late := poll(t, p, m.After, "resource=b", had); len(late.Total) != 331 || len(late.Resource) != 331 {
		t.Errorf("%d and %d seconds after the last one that was seen, want 331", len(late.Total), len(late.Resource))
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
	if got, want := fmt.Sprint(m.Total[0][1:]), "[1 0 1 0 20000 20000 -1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The total is of inbound calls, whatever they call in turn. While there are none the background is shown, all
// outermost calls, and a viewer drops that when there are: nobody says that the server was started again.
func TestTotal(t *testing.T) {
	p, c, now := newPage(t, live.Options{MaxRows: 1})
	_ = c.Do(t.Context(), "warm up", func(ctx context.Context) error {
		return c.Do(ctx, "query", func(context.Context) error { return nil })
	})
	*now = now.Add(time.Second)
	first := poll(t, p, "")
	if first.Inbound || fmt.Sprint(first.Total[0][1:]) != "[1 0 1 0 0 0 0]" {
		t.Errorf("before: %+v", first)
	}
	_ = c.Do(t.Context(), "request", func(ctx context.Context) error {
		for range 5 {
			_ = c.Do(ctx, "query", func(context.Context) error { return nil }, collector.Outbound())
		}
		return nil
	}, collector.Inbound())
	*now = now.Add(time.Second)
	m := poll(t, p, first.After)
	if !m.Inbound || !m.Fresh || m.Process != first.Process || len(m.Total) != 2 || fmt.Sprint(m.Total[0][1:]) != "[0 0 0 0 0 -1 -1]" || fmt.Sprint(m.Total[1][1:]) != "[1 0 1 0 0 0 0]" || fmt.Sprint(m.rows()) != "[[2 5 0 5 0 0 0 0 0 0 0]]" {
		t.Errorf("after: %+v", m)
	}
}

// Of many resources a viewer gets a page: those before others by what it sorts by, whose names have what it searches.
func TestPagesOfTheTable(t *testing.T) {
	p, c, now := newPage(t, live.Options{MaxRows: 3})
	for i := range 10 {
		for range 11 + i {
			c.Resource(fmt.Sprint("R", i)).Block("")
		}
		e := c.Resource(fmt.Sprint("r-rt", i)).Enter()
		*now = now.Add(time.Duration(10-i) * time.Millisecond)
		e.Exit(nil)
	}
	*now = now.Add(950 * time.Millisecond)
	for parameters, want := range map[string]string{
		"sort=block":                 "[R9 R8 R7] of 20",
		"sort=block&from=3":          "[R6 R5 R4] of 20",
		"sort=block&from=19":         "[r-rt9] of 20",
		"sort=block&from=20":         "[] of 20",
		"sort=block&up=true":         "[r-rt9 r-rt8 r-rt7] of 20",
		"sort=name":                  "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=name&up=true":          "[R9 R8 R7] of 20",
		"sort=name&search=RT":        "[r-rt0 r-rt1 r-rt2] of 10",
		"sort=rt_p99&search=r":       "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=rt_avg&search=nothing": "[] of 0",
		"sort=peak":                  "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=block&held=3.1":        "[R1 R0 R9] of 20",
		"sort=block&held=3.1.99":     "[R1 R0 R9] of 20",
		"sort=block&held=3.1.5":      "[R1 R0 R2] of 20",
		"sort=block&search=" + strings.Repeat("R", 900): "[] of 0",
	} {
		m := poll(t, p, "", parameters)
		if got := fmt.Sprint(m.names(), " of ", m.Table.Matches); got != want || m.Table.Resources != 20 {
			t.Errorf("%.50s: %s, want %s; %d resources", parameters, got, want, m.Table.Resources)
		}
	}
	for _, wrong := range []string{
		"sort=x", "sort=in_flight", "up=z", "from=-1", "from=x", "from=1000000001", "held=1..2", "held=x", "held=1.2.3.4", "search=" + strings.Repeat("R", 1001),
		"had=x", "range=1", "range=1-x", "range=5-5", "range=0-5", "range=5-1", "range=1-602", "range=1-2-3", "range=-9223372036854775808-9223372036854775807",
	} {
		if rec := get(t, p, "/live/seconds?"+wrong); rec.Code != http.StatusBadRequest {
			t.Errorf("%.50s: %d", wrong, rec.Code)
		}
		if rec := get(t, p, "/live/stream?"+wrong); rec.Code != http.StatusBadRequest {
			t.Errorf("stream, %.50s: %d", wrong, rec.Code)
		}
	}
	if rec := get(t, p, "/live/seconds?sort=x&up=z&from=-1&after=q&range=2-1&had=y"); strings.Count(rec.Body.String(), "\n") != 6 {
		t.Errorf("of six mistakes it says %s", rec.Body)
	}
}

// The table of a range has sums and averages of its seconds, the p99 of all its calls, and the passes of its seconds,
// or the most of each few.
func TestTableOfARange(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	begin := now.Unix()
	call := func(name string, takes time.Duration) {
		e := c.Resource(name).Enter()
		*now = now.Add(takes)
		e.Exit(nil)
	}
	for second := range 300 {
		for range second % 7 {
			call("a", 10*time.Millisecond)
		}
		if second == 250 {
			c.Resource("b").Block("")
			call("b", 500*time.Millisecond)
		}
		*now = now.Truncate(time.Second).Add(time.Second)
	}
	for _, tc := range []struct {
		first, end int64
		want       string // the times of the table, its rows, and their names with what the small charts show
	}{
		{250, 251, "250 251 [[2 1 1 1 0 500000 500000 500000 0 1 0] [1 5 0 5 0 50000 10000 10000 0 0 10000]] b[1] a60"},
		{248, 252, "248 252 [[2 1 1 1 0 250000 500000 500000 0 1 0] [1 18 0 18 0 45000 10000 10000 0 0 10000]] b[1 0] a[3 4 5 6]"},
		{7, 9, "7 9 [[1 1 0 1 0 5000 10000 -1 0 0 10000]] a[0 1]"},
		{0, 180, "0 180 [[1 535 0 535 0 29888 10000 -1 0 0 10000]] a60"},
		{-500, 2, "0 2 [[1 1 0 1 0 10000 10000 -1 0 0 10000]] a[1]"},
		{299, 400, "299 300 [[1 5 0 5 0 50000 10000 10000 0 0 10000] [2 0 0 0 0 0 -1 -1 0 0 0]] a60 b50"},
		{400, 500, "400 500 []"},
	} {
		m := poll(t, p, "", fmt.Sprintf("range=%d-%d", begin+tc.first, begin+tc.end))
		got := fmt.Sprint(m.Table.First-begin, m.Table.End-begin, " ", m.rows())
		for _, x := range m.Table.Rows {
			if got += " " + x.Name; len(x.Past) > 10 {
				got += fmt.Sprint(len(x.Past))
			} else {
				got += fmt.Sprint(x.Past)
			}
		}
		if got != tc.want {
			t.Errorf("seconds %d to %d: %s\nwant %s", tc.first, tc.end, got, tc.want)
		}
	}
}

// Trouble comes first: failed calls, refused ones, then a p99 that is twice what is usual, then the busiest. It counts
// for ten seconds.
func TestTroubleComesFirst(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	call := func(name string, takes time.Duration, err error) {
		e := c.Resource(name).Enter()
		*now = now.Add(takes)
		e.Exit(err)
	}
	for range 200 {
		for _, name := range []string{"failing", "fast", "noisy", "refused", "slow", "slower"} {
			call(name, 2*time.Millisecond, nil)
		}
		call("tiny", time.Microsecond, nil)
		*now = now.Truncate(time.Second).Add(time.Second)
	}
	order := func(want string) {
		t.Helper()
		*now = now.Truncate(time.Second).Add(time.Second)
		if got := strings.Join(poll(t, p, "").names(), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	poll(t, p, "")
	call("failing", 0, errors.New("no"))
	c.Resource("refused").Block("")
	c.Resource("refused").Block("")
	call("slower", 9*time.Millisecond, nil)
	call("slow", 5*time.Millisecond, nil)
	call("noisy", 3*time.Millisecond, nil)
	call("noisy", 3*time.Millisecond, nil)
	call("tiny", 20*time.Microsecond, nil)
	order("failing refused slower slow noisy tiny fast")
	*now = now.Add(8 * time.Second)
	order("failing refused fast noisy slow slower tiny")
	order("failing fast noisy refused slow slower tiny")
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
	if err := c.SetLimits([]collector.Limit{{Resource: "b", Grade: collector.Concurrency, Count: 7}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	m := poll(t, p, "", "resource=b")
	const want = "map[blocks:[{because 0 1 0}] callers:[{http › a 3 0 0} {_default 0 1 0}] codes:[{ 0 0 3}] limits:[{concurrency 7 0 0}] origins:[{mobile 3 0 0} { 0 1 0}] running:[]]"
	if got := fmt.Sprint(m.Details); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// They follow.
	c.Block(t.Context(), "b", "because", collector.Origin("desktop"))
	if err := c.SetLimits([]collector.Limit{{Resource: "b", Grade: collector.QPS, Count: 9}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	m = poll(t, p, m.After, "resource=b")
	const next = "map[blocks:[{because 0 2 0}] callers:[{http › a 3 0 0} {_default 0 2 0}] codes:[{ 0 0 3}] limits:[{qps 9 0 0}] origins:[{mobile 3 0 0} { 0 1 0} {desktop 0 1 0}] running:[]]"
	if got := fmt.Sprint(m.Details); got != next {
		t.Errorf("%s\nwant %s", got, next)
	}
	for _, name := range []string{"c", ""} {
		if none := poll(t, p, "", "resource="+name); none.Resource != nil || none.Details != nil {
			t.Errorf("%q: %v", name, none.Details)
		}
	}
}

// A resource for names beyond the limits is one as any other, and so is a place of the call tree below which calls are
// not shown.
func TestDetailsOfTheOverflow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, MaxResources: collector.MaxDepth + 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := live.New(c, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var names []string
	for i := range collector.MaxDepth + 1 {
		names = append(names, fmt.Sprint("n", i))
	}
	for _, name := range append(names, "beyond") { // the last two are too deep for the tree
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
	m := poll(t, p, "", "resource="+collector.Other)
	const want = "[{ 0 1 0} {mobile 1 0 0}] [{http 1 1 0}]"
	if got := fmt.Sprint(m.Details["origins"], m.Details["callers"]); got != want {
		t.Errorf("%s\nwant %s", got, want)
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
	seen := map[int64]bool{}
	id := ""
	for range 3 {
		var m message
		id, m = next(events)
		for _, s := range m.Total {
			if seen[s[0]] {
				t.Errorf("%d came twice", s[0])
			}
			seen[s[0]] = true
		}
	}
	if full, said := open(""); full.StatusCode != http.StatusOK {
		t.Error(full.Status)
	} else if all, err := io.ReadAll(said); err != nil || string(all) != "retry: 10000\nevent: full\ndata: all 1 places for viewers are taken\n\n" {
		t.Errorf("%q, %v", all, err)
	}
	_ = resp.Body.Close()
	for range 100 { // until the place is free
		_, events = open(id)
		if begin, err := events.Peek(3); err == nil && string(begin) == "id:" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		_, m := next(events)
		if m.Fresh {
			t.Error("what is known is sent again")
		}
		for _, s := range m.Total {
			if seen[s[0]] {
				t.Errorf("%d came again", s[0])
			}
			seen[s[0]] = true
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

// All viewers get the same seconds.
func TestViewersAgree(t *testing.T) {
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
					for _, s := range m.Total {
						seen[i] += fmt.Sprintf("%d:%d ", s[0], s[1:])
					}
				}
			}
		})
	}
	all.Wait()
	longest := slices.MaxFunc(seen, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for i, s := range seen {
		if !strings.HasPrefix(longest, s) || strings.Count(s, ":") < events-2 {
			t.Errorf("viewer %d got %q; it should be the beginning of %q", i, s, longest)
		}
	}
}

func TestMistakes(t *testing.T) {
	if _, err := live.New(nil, live.Options{MaxViewers: -1, MaxRows: -1}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}

// Calls that hang are named, in the order of their age, with what somebody needs to find them; calls that end soon are
// not.
func TestCallsInFlightForLong(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	ctx, request, _ := c.Enter(t.Context(), "GET /", collector.Inbound(), collector.Origin("web"), collector.Entrance("http"), collector.TraceID(`4bf9<b>`))
	began := now.UnixMilli()
	*now = now.Add(1500 * time.Millisecond)
	_, hung, _ := c.Enter(ctx, "db")
	*now = now.Add(time.Second)
	_, fresh, _ := c.Enter(t.Context(), "db")
	defer fresh.Exit(nil)
	*now = now.Add(500 * time.Millisecond)
	want := fmt.Sprintf("[{GET / web http 4bf9<b> %d} {db web http 4bf9<b> %d}]", began, began+1500)
	if m := poll(t, p, ""); fmt.Sprint(m.Running) != want || m.Age != -1 {
		t.Errorf("%v run, want %s; age %d", m.Running, want, m.Age)
	}
	m := poll(t, p, "", "resource=db")
	if n := len(m.Details["running"]); n != 1 || m.Age/1000 != 999 {
		t.Errorf("%d calls of the resource, of %d µs", n, m.Age)
	}
	hung.Exit(nil)
	request.Exit(nil)
	*now = now.Add(time.Second)
	if m := poll(t, p, ""); len(m.Running) != 1 || m.Running[0].Resource != "db" {
		t.Errorf("%v run after their end", m.Running)
	}
}
