package node

import (
	"reflect"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Every number of a record has exactly one column.
func TestEveryNumberHasAColumn(t *testing.T) {
	var m MetricNode
	fields := map[uintptr]string{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			field := v.Field(i)
			switch field.Interface().(type) {
			case int64, time.Duration:
				fields[field.Addr().Pointer()] = v.Type().Field(i).Name
			case Counts:
				walk(field)
			}
		}
	}
	walk(reflect.ValueOf(&m).Elem())
	names := map[string]bool{}
	for _, c := range Columns() {
		at := reflect.ValueOf(c.At(&m)).Pointer()
		if fields[at] == "" || names[c.Name] || c.Name == "" || c.Help == "" {
			t.Errorf("column %q, %q: its address belongs to no number, or to another column", c.Name, c.Help)
		}
		names[c.Name] = true
		delete(fields, at)
	}
	for _, name := range fields {
		t.Errorf("%s has no column", name)
	}
}

// The code that packs, unpacks and adds records has a separate statement for each number, and no loop over the columns,
// because it runs for each second of each leaf. If this code left out a number, the column of this number would be 0 in
// every view.
func TestEveryColumnIsKept(t *testing.T) {
	now := time.Duration(0)
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return now },
		Wall: func() time.Time { return time.Unix(1_700_000_000, 0).Add(now) },
	})
	config, err := NewConfig(line, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want MetricNode
	for i, c := range Columns() {
		*c.At(&want) = int64(100 + i)
	}
	rec := &record{
		Counts: want.Counts, inFlightAtStart: 1, inFlight: want.InFlight,
		maxInFlight: want.InFlightMax, maxInFlightUpper: want.InFlightMaxUpper,
		lateEntry: 7, inFlightTime: want.InFlightTime,
	}
	v := NewView(config, 0)
	first := v.Since()
	leaves := []*Statistic{New(config, 0), New(config, 0)}
	for _, s := range leaves {
		s.ensureHistory()
		s.store(secondStart(first), rec, []int64{want.PassPeak, want.Pass})
	}
	now = 10 * time.Second
	line.At(line.Now())
	check := func(n int64) {
		t.Helper()
		v.set(leaves[:n])
		one, ok := v.Second(first)
		if many := v.AppendSeconds(nil, first, first+1); !ok || len(many) != 1 || many[0] != one {
			t.Errorf("one second %+v (%t), seconds %+v", one, ok, many)
		}
		for _, c := range Columns() {
			sum := n * *c.At(&want)
			if c.None != nil { // shortest and longest response times are not added
				sum = *c.At(&want)
			}
			if c.Name == "in_flight_max" && n > 1 { // here the lower bound is the sum of the calls in flight at the end
				sum = n * want.InFlight
			}
			if got := *c.At(&one); got != sum {
				t.Errorf("%s of %d leaves is %d, want %d", c.Name, n, got, sum)
			}
		}
	}
	check(1)
	check(2)
	for _, s := range leaves {
		// Add a later record, so that the first record is no longer the newest one.
		s.store(secondStart(first+5), rec, []int64{0, want.Pass})
	}
	check(1)
	check(2)
	sum := MetricNode{Counts: want.Counts.Add(want.Counts)}
	for _, c := range Columns() {
		var m MetricNode
		*c.At(&m) = 1
		// If a second has only a peak, it is idle: the passes of the peak were in the second before.
		if m.Idle() != (c.Name == "pass_peak") {
			t.Errorf("a second with %s is idle: %t", c.Name, m.Idle())
		}
		counted := !m.Counts.Idle()
		if counted && *c.At(&sum) != 2**c.At(&want) && c.None == nil {
			t.Errorf("Add leaves out %s", c.Name)
		}
		if none := c.None != nil && c.None(&m); none != (c.Name == "rt_min" || c.Name == "rt_max") {
			t.Errorf("%s: absent: %t", c.Name, none)
		}
		if c.None != nil && c.None(&want) {
			t.Errorf("%s: absent although calls ended", c.Name)
		}
	}
}
