package live_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// Each viewer receives each second once, from any position.
func TestPollFromAnyPosition(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	hostile := "<script>alert(1)</script>\n\"\xff"
	c.Resource("a").Block("")
	*now = now.Add(time.Second)
	first := poll(t, p, "", "sort=pass")
	const columns = "[pass block complete exception in_flight_avg rt_avg rt_p99]"
	at := first.At
	if !first.Fresh || fmt.Sprint(first.Columns) != columns ||
		fmt.Sprint(first.names(), first.Table.Rows[0].Past) != "[a] [0]" ||
		first.Now != (at+1)*1000 ||
		fmt.Sprint(first.Total) != fmt.Sprintf("[[%d 0 1 0 0 0 -1 -1]]", at) ||
		fmt.Sprint(first.rows()) != "[[1 0 1 0 0 0 -1 -1]]" {
		t.Errorf("%+v", first)
	}
	e := c.Resource(hostile).Enter()
	*now = now.Add(20 * time.Millisecond)
	e.Exit(nil)
	*now = now.Add(980 * time.Millisecond)
	second := poll(t, p, first.After, "sort=pass")
	if second.Fresh || second.Columns != nil ||
		fmt.Sprint(second.Total) != fmt.Sprintf("[[%d 1 0 1 0 20000 20000 20000]]", at+1) ||
		fmt.Sprint(second.rows()) != "[[2 1 0 1 0 20000 20000 20000] [1 0 0 0 0 0 -1 -1]]" ||
		!slices.Equal(second.names(), []string{collector.CleanName(hostile), "a"}) {
		t.Errorf("%+v", second)
	}
	if again := poll(t, p, second.After); len(again.Total) != 0 || len(again.rows()) != 2 || again.At != second.At {
		t.Errorf("%+v", again)
	}
	*now = now.Add(2 * time.Second)
	third := poll(t, p, second.After, "sort=pass") // two seconds after the last poll
	if third.Fresh || len(third.Total) != 2 || fmt.Sprint(third.Table.Rows[1].Past) != "[0 0 0 0]" {
		t.Errorf("%+v", third)
	}
	// A position of another process gets everything, because row numbers and columns may differ.
	var parts [3]int64
	if _, err := fmt.Sscanf(third.After, "%d-%d-%d", &parts[0], &parts[1], &parts[2]); err != nil {
		t.Fatal(err)
	}
	other := poll(t, p, fmt.Sprintf("%d-%d-%d", parts[0]+2, parts[1], parts[2]))
	if !other.Fresh || fmt.Sprint(other.Columns) != columns || len(other.Total) != 4 {
		t.Errorf("%+v", other)
	}
	for _, invalid := range []string{"x", "1", "1-2", "1-2-3-4", "1-2-x", strings.Repeat("1", 100), "-1--2--3x"} {
		if rec := get(t, p, "/live/seconds?after="+invalid); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", invalid, rec.Code)
		}
	}
	// Any three integers are a valid position.
	for _, extreme := range []string{
		"-1--2--3",
		fmt.Sprintf("%d-9223372036854775807-9223372036854775807", parts[0]),
		fmt.Sprintf("%d--9223372036854775808--9223372036854775808", parts[0]),
	} {
		poll(t, p, extreme, "had=-9223372036854775808")
	}
}

// The first poll receives the whole history of the total and of the open resource. Later polls receive only new
// seconds.
func TestHistoryOfTotalAndResource(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	for i := range 700 {
		if i >= 400 {
			c.Resource("b").Block("")
		}
		c.Resource("a").Block("")
		*now = now.Add(time.Second)
	}
	m := poll(t, p, "", "resource=b")
	if len(m.Total) != 600 || m.Total[0][0] != m.At-599 || fmt.Sprint(m.Total[599][1:4]) != "[0 2 0]" ||
		len(m.Resource) != 300 || m.Resource[0][2] != 1 || m.Resource[299][0] != m.At {
		t.Errorf("%d seconds of the total, %d of b, at %d: %d", len(m.Total), len(m.Resource), m.At, m.Resource)
	}
	had := fmt.Sprint("had=", m.At)
	c.Resource("b").Block("")
	*now = now.Add(time.Second)
	next := poll(t, p, m.After, "resource=b", had)
	if len(next.Total) != 1 || fmt.Sprint(next.Resource) != fmt.Sprintf("[[%d 0 1 0 0 0 -1 -1]]", next.At) {
		t.Errorf("%+v", next)
	}
	if other := poll(t, p, m.After, "resource=a"); len(other.Total) != 1 || len(other.Resource) != 600 {
		t.Errorf("%d seconds of the total, %d of a", len(other.Total), len(other.Resource))
	}
	for had, want := range map[int64]int{
		math.MaxInt64: 0, m.At + 1000: 0, m.At + 1: 0, m.At: 1, -1: 301, math.MinInt64: 301,
	} {
		next := poll(t, p, m.After, "resource=b", fmt.Sprint("had=", had))
		if next.Resource == nil || len(next.Resource) != want {
			t.Errorf("a viewer with the seconds up to %d receives %d, want %d", had, len(next.Resource), want)
		}
	}
	if none := poll(t, p, m.After, "resource=c"); none.Resource != nil { // no resource has this name
		t.Errorf("%+v", none)
	}
	*now = now.Add(30 * time.Second) // without viewers
	if late := poll(t, p, m.After, "resource=b", had); len(late.Total) != 31 || len(late.Resource) != 31 {
		t.Errorf("got %d and %d seconds, want 31: %+v", len(late.Total), len(late.Resource), late)
	}
	*now = now.Add(300 * time.Second) // long enough for the series to restart
	if late := poll(t, p, m.After, "resource=b", had); len(late.Total) != 331 || len(late.Resource) != 331 {
		t.Errorf("got %d and %d seconds, want 331", len(late.Total), len(late.Resource))
	}
}

// A second whose histogram was dropped has an average but no p99.
func TestDroppedHistogram(t *testing.T) {
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

// The total counts inbound calls, and not the calls below them. Before the first inbound call the total is the
// background: all outermost calls. At the first inbound call a viewer receives everything again, from the same process.
func TestTotalChangesToInbound(t *testing.T) {
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
	if !m.Inbound || !m.Fresh || m.Process != first.Process || len(m.Total) != 2 ||
		fmt.Sprint(m.Total[0][1:]) != "[0 0 0 0 0 -1 -1]" || fmt.Sprint(m.Total[1][1:]) != "[1 0 1 0 0 0 0]" ||
		fmt.Sprint(m.rows()) != "[[2 5 0 5 0 0 0 0]]" {
		t.Errorf("after: %+v", m)
	}
}
