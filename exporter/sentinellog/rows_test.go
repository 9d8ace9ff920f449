package sentinellog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/sentinellog"
	"github.com/windowstat/windowstat/node"
)

// Rows returns every row of a process, or of all processes, once and in order: over several files and blocks, and also
// a last second without a total.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	const begin, length = 1_767_355_200, 1500
	one, two := newJavaLog(t, dir, "shop", 0), newJavaLog(t, dir, "shop", 7)
	one.maxBytes = 9000
	for second := int64(begin); second < begin+length; second++ {
		rows := traffic(1, second, 5, false)
		if second%100 == 99 {
			delete(rows, "__total_inbound_traffic__")
		}
		one.write(second, rows)
		two.write(second, traffic(2, second, 2, false))
	}
	for _, tc := range []struct {
		name string
		pid  int
		sum  bool
		logs []*javaLog
	}{
		{"without a process ID", 0, false, []*javaLog{one}},
		{"with a process ID", 7, false, []*javaLog{two}},
		{"sum", 0, true, []*javaLog{one, two}},
	} {
		const from, to = begin + 50, begin + length
		seen := map[string]bool{}
		last := int64(0)
		err := sentinellog.Rows(dir, metriclog.Log{App: "shop", PID: tc.pid}, tc.sum, from, to,
			func(name string, m *node.MetricNode) error {
				at := m.Start.Unix()
				var pass, complete int64
				for _, l := range tc.logs {
					pass, complete = pass+l.truth[at][name].pass, complete+l.truth[at][name].success
				}
				key := fmt.Sprint(at, name)
				if seen[key] || at < last || m.Pass != pass || m.Complete != complete {
					t.Fatalf(
						"%s: %s in second %d: %+v, want %d passes and %d completions",
						tc.name,
						name,
						at-begin,
						m,
						pass,
						complete,
					)
				}
				seen[key], last = true, at
				return nil
			})
		want := map[string]bool{}
		for _, l := range tc.logs {
			for second, rows := range l.truth {
				for name := range rows {
					if second >= from {
						want[fmt.Sprint(second, name)] = true
					}
				}
			}
		}
		if err != nil || len(seen) != len(want) {
			t.Errorf("%s: %d rows, %v, want %d", tc.name, len(seen), err, len(want))
		}
	}
	enough := errors.New("enough")
	err := sentinellog.Rows(dir, metriclog.Log{App: "shop"}, false, begin, begin+9,
		func(string, *node.MetricNode) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}
