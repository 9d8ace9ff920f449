package live

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// newTestFeed returns a feed with the given number of rows per page, its Collector, and the time of the Collector.
func newTestFeed(t *testing.T, rows int) (*feed, *collector.Collector, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return newFeed(c, rows), c, &now
}

// For any number of viewers, with any positions, a second of all resources and of the total is read once, and sorted
// once for each column. The details of a resource are read once as well. The test compares addresses.
func TestSecondsAreReadOnce(t *testing.T) {
	f, c, now := newTestFeed(t, 50)
	for range 5 {
		for i := range 100 {
			c.Resource(fmt.Sprint("resource ", i)).Block("")
		}
		*now = now.Add(time.Second)
	}
	first := &viewer{query: query{sortBy: "block", resourceName: "resource 5"}}
	m := f.message(first)
	order := first.sentTable.sorted("block", f.columns)
	for i := range int64(50) {
		v := &viewer{
			query:    query{sortBy: "block", resourceName: "resource 5"},
			position: position{first.epoch, first.first - i, first.last - i%7},
		}
		again := f.message(v)
		if v.sentTable != first.sentTable || &v.sentTable.sorted("block", f.columns)[0] != &order[0] ||
			&v.sentDetails[0] != &first.sentDetails[0] {
			t.Fatalf("viewer %d does not share the table, the order and the details of the first viewer", i)
		}
		for _, second := range again.Total {
			if !slices.ContainsFunc(m.Total, func(x []int64) bool { return &x[0] == &second[0] }) {
				t.Fatalf("viewer %d does not share the second %v of the first viewer", i, second)
			}
		}
	}
}

// Requests for many resources and ranges, and of many hosts, do not increase the memory of the page without a bound.
func TestMemoryIsBounded(t *testing.T) {
	f, c, now := newTestFeed(t, 50)
	const resources = 300
	for i := range resources {
		c.Resource(fmt.Sprint("resource ", i)).Block("")
	}
	*now = now.Add(100 * time.Second)
	for i := range resources {
		v := &viewer{query: query{
			sortBy: "block", resourceName: fmt.Sprint("resource ", i),
			rangeFirst: now.Unix() - 90 + int64(i%80), rangeEnd: now.Unix(),
		}}
		if m := f.message(v); len(m.Resource) != 100 || len(m.Details) == 0 || m.Table.Resources != resources {
			t.Fatalf("viewer %d: %d seconds, %s, %+v", i, len(m.Resource), m.Details, m.Table)
		}
	}
	if len(f.ranges) != maxRanges {
		t.Errorf("%d ranges are kept, want %d", len(f.ranges), maxRanges)
	}
	// The table of a range is sent once, even if the feed has dropped its snapshot.
	v := &viewer{query: query{sortBy: "block", rangeFirst: now.Unix() - 50, rangeEnd: now.Unix() - 40}}
	for i := range 3 {
		if m := f.message(v); (m.Table != nil) != (i == 0) {
			t.Errorf("message %d has the table %+v", i, m.Table)
		}
		f.ranges = nil
	}
	tooOld := &viewer{query: query{sortBy: "block", rangeFirst: 50, rangeEnd: 60}}
	for i := range 3 {
		if m := f.message(tooOld); (m.Table != nil) != (i == 0) {
			t.Errorf("message %d for seconds that are no longer kept has the table %+v", i, m.Table)
		}
	}
	var b budget
	for i := range 3000 {
		if i%1000 == 0 {
			// The limiters of all earlier hosts become full again, except for one busy host. The busy host must not
			// keep the others in the table.
			time.Sleep(20 * time.Millisecond)
			b.limiterOf("busy").ReserveN(time.Now(), burst)
		}
		if _, err := b.wait(t.Context(), fmt.Sprint("host ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.hosts.Len(); n > 1001 {
		t.Errorf("the budget has %d hosts", n)
	}
}
