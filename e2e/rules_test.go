package e2e

import "testing"

// TestRules has both majors of Prometheus run the unit tests of the rules: a range at whole seconds has one sample more in the older
// one.
func TestRules(t *testing.T) {
	t.Parallel()
	const dir = "../dashboards/rules"
	for _, p := range []program{promtool2, promtool} {
		for _, command := range [][]string{{"check", "rules", "recording.yaml", "alerts.yaml"}, {"test", "rules", "test.yaml"}} {
			if err := run(t.Context(), dir, append([]string{p.path(t)}, command...)...); err != nil {
				t.Error(err)
			}
		}
	}
}
