package seconds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// tallied is a Sink that counts samples.
type tallied struct {
	samples int
	names   map[string]bool
}

func (s *tallied) Series(f *table.Family, _, _ []string) { s.names[f.Name] = true }
func (s *tallied) Value(int64, float64)                  { s.samples++ }
func (s *tallied) Histogram(_ int64, h *node.Histogram)  { s.samples++ }

// The size of a second includes the selected sums, for the selected metrics only.
func TestSizeIncludesSums(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	r, line := seconds.NewResources(c, "x", nil), seconds.NewLine(c)
	e := c.Resource("a").Enter()
	now = now.Add(time.Millisecond)
	e.Exit(nil)
	now = now.Add(time.Second)
	c.Seal()
	open := line.Open()
	for _, metrics := range [][]string{nil, {"x_persecond_pass", "x_persecond_rt_max_seconds"}} {
		for _, sums := range []seconds.Temporality{seconds.None, seconds.Single, seconds.Cumulative} {
			s := seconds.Selection{Sums: sums, Metrics: metrics}
			got := tallied{names: map[string]bool{}}
			r.Emit(&s, open-1, open, seconds.Limit{Seconds: 1}, &got)
			if want := r.Size(&s, open-1).Samples; got.samples != want {
				t.Errorf("%d sums of %q: %d samples, and the size is %d", sums, metrics, got.samples, want)
			}
			n := 0
			for name := range got.names {
				if strings.HasSuffix(name, "_total") {
					n++
				}
			}
			want := map[bool]int{true: 5, false: 1}[metrics == nil]
			if sums == seconds.None {
				want = 0
			}
			if n != want {
				t.Errorf("%d sums of %q: %d families", sums, metrics, n)
			}
		}
	}
}

// A log contains the counts of each second, but not the counts before it. A Filler therefore emits single sums and no
// cumulative ones.
func TestFillerOfSums(t *testing.T) {
	for sums, want := range map[seconds.Temporality]string{
		seconds.Single: " 5000:3 5001:4", seconds.Cumulative: "", seconds.None: "",
	} {
		var s recorder
		b := seconds.NewFiller("x", nil, &seconds.Selection{Sums: sums}, 5000, 10, &s)
		for i := range int64(2) {
			b.Add("a", &node.MetricNode{Start: time.Unix(5000+i, 0), Counts: node.Counts{Block: 3 + i}})
		}
		b.Flush()
		s.end()
		if got := strings.Join(s.of("block_total", "a"), ""); got != want {
			t.Errorf("%d: %q, want %q", sums, got, want)
		}
	}
}
