package live

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// A main count of a second is in the feed, whatever it is called: nobody has to write it down here again.
func TestEveryMainCountIsSent(t *testing.T) {
	feed := newColumns(false)
	for _, c := range node.Columns() {
		if c.Kind == node.Count && !c.Detail && !slices.Contains(feed.names, c.Name) {
			t.Errorf("the feed has %v, and not %s", feed.names, c.Name)
		}
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
		if feed := slices.Concat(newColumns(false).names, rowColumns, processColumns[:]); !slices.Contains(feed, string(m[1])) {
			t.Errorf("the script shows %s, and the feed has %v", m[1], feed)
		}
	}
}

// Each value stands where its name does, times in microseconds, and is -1 where there is none.
func TestValuesStandByTheirNames(t *testing.T) {
	m := node.MetricNode{Counts: node.Counts{Pass: 1, Block: 2, Complete: 3, Exception: 4, RTSum: 15 * time.Microsecond}, InFlightTime: 6 * time.Microsecond}
	for _, tc := range []struct {
		untimed bool
		m       node.MetricNode
		p99     time.Duration
		want    string
	}{
		{false, m, 7 * time.Microsecond, "block:2 complete:3 exception:4 in_flight_avg:6 pass:1 rt_avg:5 rt_p99:7"},
		{false, m, noDuration, "block:2 complete:3 exception:4 in_flight_avg:6 pass:1 rt_avg:5 rt_p99:-1"},
		{false, node.MetricNode{}, noDuration, "block:0 complete:0 exception:0 in_flight_avg:0 pass:0 rt_avg:-1 rt_p99:-1"},
		{true, m, 7 * time.Microsecond, "block:2 complete:3 exception:4 in_flight_avg:-1 pass:1 rt_avg:-1 rt_p99:-1"},
	} {
		c, got := newColumns(tc.untimed), map[string]int64{}
		values := c.appendValues(nil, &tc.m, tc.p99)
		for i, name := range c.names {
			got[name] = values[i]
		}
		if len(values) != len(got) || fmt.Sprint(got) != "map["+tc.want+"]" {
			t.Errorf("untimed %v: got %v, want %s", tc.untimed, got, tc.want)
		}
	}
}
