package e2e

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// refusals are the counters of a Prometheus for samples that it did not store.
var refusals = []string{
	"prometheus_target_scrapes_sample_out_of_order_total",
	"prometheus_target_scrapes_sample_duplicate_timestamp_total",
	"prometheus_target_scrapes_sample_out_of_bounds_total",
	"prometheus_target_scrapes_exceeded_sample_limit_total",
}

// refused returns the number of samples that a Prometheus did not store. VictoriaMetrics refuses none; it would have
// too many samples instead.
func refused(t *testing.T, s *server) (sum float64) {
	t.Helper()
	if s.isVictoria {
		return 0
	}
	page, err := s.get("/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := parsePage(page)
	for _, name := range refusals {
		value, ok := found[name]
		if !ok {
			t.Errorf("%s has no %s", s.name, name)
		}
		if value != 0 {
			t.Logf("%s: %s is %v", s.name, name, value)
		}
		sum += value
	}
	return sum
}

// checkCounters checks a server that must have stored all samples.
func checkCounters(t *testing.T, s *server) {
	t.Helper()
	if n := refused(t, s); n != 0 {
		t.Errorf("%s refused %v samples", s.name, n)
	}
}

// parsePage reads a page of metrics. The key is the text before the last space of a line, and the value is the number
// after it.
func parsePage(page []byte) map[string]float64 {
	found := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		line := lines.Text()
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			found[line[:i]], _ = strconv.ParseFloat(line[i+1:], 64)
		}
	}
	return found
}
