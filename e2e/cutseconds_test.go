package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// cutSeconds selects the first seconds of each run. A kill of the previous run may have cut some of them.
const cutSeconds = `windowstat_persecond_run != windowstat_persecond_run offset 32s`

// TestCutSeconds evaluates cutSeconds around a kill that loses one second.
func TestCutSeconds(t *testing.T) {
	t.Parallel()
	const labels = `{job="shop",instance="a"}`
	test := fmt.Sprintf(`
tests:
  - interval: 1s
    input_series:
      - {series: 'windowstat_persecond_run%s', values: '7x59 _ 8x100'}
    promql_expr_test:
`, labels)
	for _, tc := range []struct {
		second int
		value  string
	}{{59, ""}, {61, "8"}, {92, "8"}, {93, ""}, {150, ""}} {
		samples := "[]"
		if tc.value != "" {
			samples = fmt.Sprintf(`[{labels: 'windowstat_persecond_run%s', value: %s}]`, labels, tc.value)
		}
		test += fmt.Sprintf("      - {eval_time: %ds, expr: '%s', exp_samples: %s}\n", tc.second, cutSeconds, samples)
	}
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
