package main

import (
	"fmt"
	"testing"
)

// longest is the default maximum of VictoriaMetrics for the length of a query in bytes (flag -search.maxQueryLen).
const longest = 16 << 10

// TestQueriesFit selects forty targets with names of forty bytes and thirty resources with names of sixty bytes, with
// characters that Grafana escapes, and compares the length of each query with the maximum of VictoriaMetrics.
func TestQueriesFit(t *testing.T) {
	var targets, names []string
	for i := range 40 {
		targets = append(targets, fmt.Sprintf("checkout-7d9f8b6c5d-%02dx2x.prod-west-1:9719", i))
	}
	for i := range 30 {
		names = append(names, fmt.Sprintf("GET /api/v1.%02d/{region}/customers/{customer}/orders/{order}/", i))
	}
	selections := map[string][]string{
		"cluster": {
			"eu-west-1.production",
			"eu-west-2.production",
		}, "namespace": {"checkout-frontend", "checkout-backend"},
		"job": {
			"checkout-frontend",
			"checkout-backend",
		}, "instance": targets, "resources": names, "resource": names[:1],
	}
	if len(targets[0]) < 40 || len(names[0]) < 60 {
		t.Fatalf("names of %d and %d bytes", len(targets[0]), len(names[0]))
	}
	n, most := 0, 0
	for name, d := range read(t) {
		expressions(d, func(where, expr string) {
			n++
			sent := inGrafana(t, expr, selections)
			if len(sent) >= longest {
				t.Errorf("%s, %s: %d bytes, and VictoriaMetrics takes fewer than %d", name, where, len(sent), longest)
			}
			most = max(most, len(sent))
		})
	}
	if n < 150 {
		t.Errorf("only %d queries", n)
	}
	t.Logf("the longest of %d queries has %d bytes", n, most)
}
