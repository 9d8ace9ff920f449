package e2e

import (
	"os"
	"strings"
	"testing"
)

// Every expression that the documentation gives is one that is tried on all servers.
func TestDocumentedExpressions(t *testing.T) {
	b, err := os.ReadFile("../docs/seconds.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(b), "```promql\n")
	block, _, closed := strings.Cut(block, "```")
	if !ok || !closed {
		t.Fatal("there is no block of expressions")
	}
	tried := map[string]bool{}
	for _, e := range expressions {
		tried[e.right] = true
	}
	// The first of these is right on all servers.
	tried[strings.ReplaceAll(quantiles[0].expression, "B", `windowstat_persecond_rt_seconds_bucket{resource="checkout"}`)] = true
	n := 0
	for line := range strings.Lines(block) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		if !tried[line] {
			t.Errorf("nobody has tried %s", line)
		}
	}
	if n < 5 {
		t.Errorf("there are %d expressions", n)
	}
}
