package live

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Messages contain every main count of [node.Columns], so a new count appears without a change here.
func TestMainCountsAreSent(t *testing.T) {
	columns := newColumns(false)
	for _, c := range node.Columns() {
		if c.Kind == node.Count && !c.Detail && !slices.Contains(columns.names, c.Name) {
			t.Errorf("the columns %v lack %s", columns.names, c.Name)
		}
	}
}

// The column names in the script are names of columns in messages.
func TestColumnNamesOfScript(t *testing.T) {
	script, err := assets.ReadFile("assets/data.js")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[A-Z0-9]+ = '(\w+)'`).FindAllSubmatch(script, -1)
	if len(names) < 7 {
		t.Errorf("the script has only the names %q", names)
	}
	for _, m := range names {
		sent := slices.Concat(newColumns(false).names, processColumns[:])
		if !slices.Contains(sent, string(m[1])) {
			t.Errorf("the script has the column %s; messages have %v", m[1], sent)
		}
	}
}

// The values have the order of the names. Times are in microseconds. A missing value is -1.
func TestValuesMatchNames(t *testing.T) {
	m := node.MetricNode{
		Counts:       node.Counts{Pass: 1, Block: 2, Complete: 3, Exception: 4, RTSum: 15 * time.Microsecond},
		InFlightTime: 6 * time.Microsecond,
	}
	for _, tc := range []struct {
		durationsUnknown bool
		m                node.MetricNode
		p99              time.Duration
		want             string
	}{
		{false, m, 7 * time.Microsecond, "block:2 complete:3 exception:4 in_flight_avg:6 pass:1 rt_avg:5 rt_p99:7"},
		{false, m, noDuration, "block:2 complete:3 exception:4 in_flight_avg:6 pass:1 rt_avg:5 rt_p99:-1"},
		{
			false,
			node.MetricNode{},
			noDuration,
			"block:0 complete:0 exception:0 in_flight_avg:0 pass:0 rt_avg:-1 rt_p99:-1",
		},
		{true, m, 7 * time.Microsecond, "block:2 complete:3 exception:4 in_flight_avg:-1 pass:1 rt_avg:-1 rt_p99:-1"},
	} {
		c, got := newColumns(tc.durationsUnknown), map[string]int64{}
		values := c.appendValues(nil, &tc.m, tc.p99)
		for i, name := range c.names {
			got[name] = values[i]
		}
		if len(values) != len(got) || fmt.Sprint(got) != "map["+tc.want+"]" {
			t.Errorf("durations unknown %v: got %v, want %s", tc.durationsUnknown, got, tc.want)
		}
	}
}
