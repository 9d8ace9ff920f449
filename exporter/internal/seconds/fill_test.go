package seconds

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// A resource is idle, and therefore zero, up to the last second of the hour after its row. It is absent one second
// later.
func TestGapsAreFilledUpToLimit(t *testing.T) {
	const limit = int64(maxIdle / time.Second)
	at := func(second int64) node.MetricNode { return node.MetricNode{Start: time.Unix(second, 0)} }
	for name, tc := range map[string]struct {
		before  int64
		rows    []node.MetricNode
		present []int64
		want    []int64
	}{
		"one before the limit": {before: 100, present: []int64{99 + limit}, want: []int64{99 + limit}},
		"at the limit":         {before: 100, present: []int64{100 + limit}, want: []int64{100 + limit}},
		"one after the limit":  {before: 100, present: []int64{101 + limit}},
		"counted from the last row": {
			before: 100, rows: []node.MetricNode{at(102)},
			present: []int64{102, 102 + limit, 103 + limit}, want: []int64{102, 102 + limit},
		},
		"never seen": {present: []int64{1, 2}},
	} {
		var w RowWriter
		w.Write(false, &Past{before: tc.before}, tc.present, tc.rows, nil, nil)
		got := w.emitters[resources].seconds
		if len(got) != len(tc.want) {
			t.Errorf("%s: %d seconds, want %v", name, len(got), tc.want)
			continue
		}
		for i := range got {
			if got[i].Start.Unix() != tc.want[i] {
				t.Errorf("%s: second %d is %d, want %d", name, i, got[i].Start.Unix(), tc.want[i])
			}
		}
	}
}

// A Filler drops a resource as soon as it no longer fills the gaps of the resource.
func TestFillerDropsIdleResources(t *testing.T) {
	limit := int64(maxIdle / time.Second)
	for late, want := range map[int64]int{limit: 2, limit + 1: 1} {
		b := NewFiller("x", nil, new(Selection), 1, 1000, nothing{})
		b.Add("idle", &node.MetricNode{Start: time.Unix(100, 0)})
		b.Add("busy", &node.MetricNode{Start: time.Unix(100+late, 0)})
		b.Flush()
		if got := len(b.series); got != want {
			t.Errorf("after %d seconds: %d resources, want %d", late, got, want)
		}
	}
}

// nothing is a Sink that discards everything.
type nothing struct{}

func (nothing) Series(*table.Family, []string, []string) {}
func (nothing) Value(int64, float64)                     {}
func (nothing) Histogram(int64, *node.Histogram)         {}
