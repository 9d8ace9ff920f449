package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRules has both majors of Prometheus run the unit tests of the rules. A range that begins at a whole second has
// one more sample in the older one.
func TestRules(t *testing.T) {
	t.Parallel()
	const dir = "../dashboards/rules"
	for _, p := range []program{promtool2, promtool} {
		for _, command := range [][]string{
			{"check", "rules", "recording.yaml", "alerts.yaml"},
			{"test", "rules", "test.yaml", "hours.yaml"},
		} {
			if err := run(t.Context(), dir, append([]string{p.path(t)}, command...)...); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOfLimit evaluates the dashboard's expressions for a limit with promtool. The limit is lowered just after a peak,
// to a value below the peak, and raised just before a higher peak. /metrics is scraped every 15 seconds, and shows the
// change later. Neither peak exceeds its limit: the first reaches 80 % of it, the second 75 %.
func TestOfLimit(t *testing.T) {
	t.Parallel()
	const labels = `{job="shop",instance="a",resource="checkout",cluster="",namespace=""}`
	scraped := func(value string, times int) string { return strings.Repeat(value+" _x14 ", times) }
	test := fmt.Sprintf(`
tests:
  - interval: 1s
    input_series:
      - {series: 'windowstat_persecond_pass_peak%[1]s', values: '5x109 80 5x119 150 5x100'}
      - {series: 'windowstat_limit_qps%[1]s', values: '%[2]s'}
    promql_expr_test:
      - eval_time: 5m
        expr: %[3]q
        exp_samples: [{labels: '{}', value: 0.8}]
`, labels, scraped("100", 8)+scraped("30", 8)+scraped("200", 8), expressionOf(t, "resource", "Of limit"))
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []program{promtool2, promtool} {
		if err := run(t.Context(), ".", p.path(t), "test", "rules", file); err != nil {
			t.Error(err)
		}
	}
}
