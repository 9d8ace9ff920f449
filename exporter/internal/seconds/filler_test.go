package seconds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// recorder is a Sink that records each series with its samples.
type recorder struct {
	parts []string // of all series
	now   string
}

func (s *recorder) Series(f *table.Family, names, values []string) {
	s.end()
	s.now = fmt.Sprintf("%s%v%v", f.Name, names, values)
}
func (s *recorder) Value(unix int64, v float64) { s.now += fmt.Sprintf(" %d:%v", unix, v) }
func (s *recorder) Histogram(unix int64, h *node.Histogram) {
	s.now += fmt.Sprintf(" %d:%v", unix, h.Count())
}
func (s *recorder) end() { s.parts = append(s.parts, s.now); s.now = "" }
func (s *recorder) of(metric, resource string) (parts []string) {
	for _, part := range s.parts {
		if rest, ok := strings.CutPrefix(part, "x_persecond_"+metric+"[resource]["+resource+"]"); ok {
			parts = append(parts, rest)
		}
	}
	return parts
}

// A Filler emits the rows of a log, and adds idle seconds while the process ran and an earlier row names the resource.
// After a minute of idleness only the passes are emitted.
func TestFiller(t *testing.T) {
	rows := func(b *seconds.Filler) {
		for _, row := range []struct {
			second   int64
			resource string
			block    int64
		}{
			{10, "long ago", 1},
			{4000, "before", 2},
			{4000, collector.InboundTotal, 2},
			{5000, "a", 3},
			{5000, "a", 99},
			{5000, collector.InboundTotal, 3},
			{5001, collector.InboundTotal, 0},
			{5003, "b", 4},
			{5003, collector.InboundTotal, 4},
			{5001, "a", 99}, // out of order
			{5004, "a", 5},
			{5004, "b", 6},
			{5004, collector.InboundTotal, 11},
			{7600, "b", 0},
			{7601, "b", 0},
			{8603, "b", 7},
			{8604, "b", 7},
			{8605, "b", 7},
		} {
			b.Add(row.resource, &node.MetricNode{
				Start:  time.Unix(row.second, 0),
				Counts: node.Counts{Block: row.block},
			})
		}
		b.Flush()
	}
	blocks := map[string]string{
		"a":        " 5000:3 5001:0 5003:0 5004:5",
		"b":        " 5003:4 5004:6 8603:7 8604:7 8605:7",
		"before":   "",
		"long ago": "",
	}
	passes := map[string]string{ // including the seconds with passes only
		"a":        " 5000:0 5001:0 5003:0 5004:0 7600:0 7601:0 8603:0 8604:0",
		"b":        " 5003:0 5004:0 7600:0 7601:0 8603:0 8604:0 8605:0",
		"before":   " 5000:0 5001:0 5003:0 5004:0 7600:0",
		"long ago": "",
	}
	for metric, want := range map[string]map[string]string{"block": blocks, "pass": passes} {
		for _, most := range []int{1, 2, 3, 5, 8, 13, 1000} { // seconds of resources at a time
			var s recorder
			b := seconds.NewFiller("x", nil, &seconds.Selection{Metrics: []string{"x_persecond_" + metric}},
				5000, most, &s)
			rows(b)
			s.end()
			for resource, want := range want {
				parts := s.of(metric, resource)
				if got := strings.Join(parts, ""); got != want {
					t.Errorf("%s of %s, %d at a time: %s, want %s", metric, resource, most, got, want)
				}
				if n := len(parts); resource == "b" && metric == "pass" && (most == 1000) != (n == 1) {
					t.Errorf("%d at a time: %d parts", most, n)
				}
			}
			if parts := s.of(metric, collector.InboundTotal); parts != nil {
				t.Errorf("inbound traffic: %s", parts)
			}
		}
	}
	var s recorder
	rows(seconds.NewFiller("x", nil, new(seconds.Selection), 5000, 1000, &s))
	s.end()
	var families []string
	for _, part := range s.parts {
		if name, _, ok := strings.Cut(part, "["); ok && name != "x_persecond_run" && !slices.Contains(families, name) {
			families = append(families, name)
		}
	}
	if !slices.Equal(families, seconds.Names("x", true)) || len(families) != 12 {
		t.Errorf("families %v", families)
	}
}

// A resource that was idle for long before a gap is idle at the start of the gap. The same holds for the total of
// inbound traffic. Its row exists in every second.
func TestFillerKeepsIdlenessAcrossGaps(t *testing.T) {
	var s recorder
	b := seconds.NewFiller("x", nil, new(seconds.Selection), 161, 1000, &s)
	for second := int64(100); second <= 162; second++ {
		block := int64(0)
		if second == 100 {
			block = 1
			b.Add("a", &node.MetricNode{Start: time.Unix(second, 0), Counts: node.Counts{Block: 1}})
		}
		b.Add(collector.InboundTotal, &node.MetricNode{Start: time.Unix(second, 0), Counts: node.Counts{Block: block}})
	}
	b.Add("a", &node.MetricNode{Start: time.Unix(163, 0), Counts: node.Counts{Block: 2}})
	b.Add(collector.InboundTotal, &node.MetricNode{Start: time.Unix(163, 0), Counts: node.Counts{Block: 2}})
	b.Flush()
	s.end()
	all := strings.Join(s.parts, "\n")
	for series, want := range map[string]string{
		"x_persecond_pass[resource][a]": " 161:0 162:0 163:0", "x_persecond_block[resource][a]": " 163:2",
		"x_persecond_inbound_pass[][]": " 161:0 162:0 163:0", "x_persecond_inbound_block[][]": " 163:2",
	} {
		if !strings.Contains(all+"\n", "\n"+series+want+"\n") {
			t.Errorf("%s is not%s in\n%s", series, want, all)
		}
	}
}

// A Filler does not emit a metric that the log does not have.
func TestFillerOfUnloggedMetric(t *testing.T) {
	selection := seconds.Selection{Metrics: []string{"x_persecond_pass_peak"}}
	logged, all := seconds.Names("x", true), seconds.Names("x", false)
	if slices.ContainsFunc(logged, selection.Has) || !slices.ContainsFunc(all, selection.Has) {
		t.Error("the log must not have the metric")
	}
	var s recorder
	b := seconds.NewFiller("x", nil, &selection, 0, 1, &s)
	b.Add("a", &node.MetricNode{Start: time.Unix(5000, 0), Counts: node.Counts{Pass: 1}})
	b.Flush()
	s.end()
	if got := strings.Join(s.parts, ""); got != "x_persecond_run[][]" {
		t.Errorf("got %q", got)
	}
}
