package verification

import (
	"fmt"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter/verify"
)

// A line has the resources with the same gap, and the names of the metrics unless all are missing.
func TestLinesOfVerify(t *testing.T) {
	at := []verify.Range{{Seconds: 3}}
	var r verify.Report
	for _, name := range []string{"pass", "block", "complete", "exception", "occupied_pass", "in_flight_max"} {
		for _, resource := range []string{"b", "a"} {
			r.Findings = append(r.Findings,
				verify.Finding{Resource: resource, Metric: "x_persecond_" + name, Missing: at})
		}
	}
	r.Findings = append(r.Findings, verify.Finding{Metric: "x_persecond_inbound_pass", Missing: at},
		verify.Finding{Resource: "c", Metric: "x_persecond_pass", Extra: at})
	v := reporter{Verification: &Verification{Namespace: "x"}}
	lines := fmt.Sprint(v.lines(r))
	for _, want := range []string{
		"missing all}:[a b]", "missing inbound_pass}:[(all inbound traffic)]",
		"extra pass}:[c]",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in %s", want, lines)
		}
	}
}
