package live

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// every wants all columns.
func every(*node.Column) bool { return true }

// A main count of a second is in the feed, whatever it is called: nobody has to write it down here again.
func TestEveryMainCountIsSent(t *testing.T) {
	feed := columnsOf(inFeed, false)
	for _, c := range node.Columns() {
		if c.Kind == node.Count && !c.Detail && !slices.Contains(feed.names, c.Name) {
			t.Errorf("the feed has %v, and not %s", feed.names, c.Name)
		}
	}
	if !inFeed(&node.Column{Name: "shed"}) {
		t.Error("a new count would not be sent")
	}
	if !slices.Contains(feed.names, "in_flight_max") {
		t.Errorf("the feed has %v, and the page shows the most in flight", feed.names)
	}
}

// The script shows columns by names that the feed has.
func TestScriptKnowsTheNames(t *testing.T) {
	script, err := assets.ReadFile("assets/data.js")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[A-Z0-9]+ = '(\w+)'`).FindAllSubmatch(script, -1)
	if len(names) < 7 {
		t.Errorf("the script shows %q", names)
	}
	for _, m := range names {
		if feed := columnsOf(inFeed, false); !slices.Contains(feed.names, string(m[1])) {
			t.Errorf("the script shows %s, and the feed has %v", m[1], feed.names)
		}
	}
}

// Each value stands where its name does, times in microseconds.
func TestValuesStandByTheirNames(t *testing.T) {
	var m node.MetricNode
	want := map[string]int64{"rt_p99": 7}
	for i, c := range node.Columns() {
		*c.At(&m) = int64(1000 * (i + 1))
		want[c.Name] = int64(1000 * (i + 1))
		if c.Kind == node.Time || c.Kind == node.CallTime {
			want[c.Name] = int64(i + 1)
		}
	}
	want["rt_avg"] = m.AvgRT().Microseconds()
	values := func(c *columns, m *node.MetricNode, p99 time.Duration) map[string]int64 {
		t.Helper()
		var list []int64
		if err := json.Unmarshal([]byte("["+strings.TrimPrefix(string(c.append(nil, m, p99)), ",")+"]"), &list); err != nil || len(list) != len(c.names) {
			t.Fatalf("%d values of %v: %v", len(list), c.names, err)
		}
		byName := map[string]int64{}
		for i, name := range c.names {
			byName[name] = list[i]
		}
		return byName
	}
	all := columnsOf(every, false)
	if got := values(all, &m, 7*time.Microsecond); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for name, v := range values(columnsOf(inFeed, false), &m, 7*time.Microsecond) {
		if v != want[name] {
			t.Errorf("in the feed %s is %d, want %d", name, v, want[name])
		}
	}
	// There is no response time of what has not ended, and none at all where none is known.
	idle := values(all, &node.MetricNode{}, none)
	for name, v := range values(columnsOf(every, true), &m, 7*time.Microsecond) {
		time := strings.HasPrefix(name, "rt_")
		if (v == -1) != (time || name == "in_flight_avg") {
			t.Errorf("without durations %s is %d", name, v)
		}
		if (idle[name] == -1) != (time && name != "rt_sum") {
			t.Errorf("idle, %s is %d", name, idle[name])
		}
	}
}

// Rows are made for each resource in each second.
func TestValuesAreNotAllocated(t *testing.T) {
	m := &node.MetricNode{Counts: node.Counts{Pass: 1_000_000, Complete: 1_000_000, RTSum: time.Hour}}
	c, b := columnsOf(every, false), make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() { b = c.append(b[:0], m, time.Second) }); n != 0 {
		t.Errorf("a row has %v allocations", n)
	}
}
