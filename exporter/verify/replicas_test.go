package verify

import (
	"testing"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// A second scraper with frequent gaps is a replica and gets its seconds back. Labels that took over are not replicas.
// If the evidence does not decide, the seconds count as missing and are not written.
func TestFrequentGaps(t *testing.T) {
	list := []runs.Run{{ID: 11, First: 1, Last: 2000, History: 120}}
	withGaps := func(labels string, from int64) (spans []span) { // 80 of every 120 seconds
		for at := from; at < 2000; at += 120 {
			spans = append(spans, span{labels, 11, at, min(at+79, 2000)})
		}
		return spans
	}
	write, elsewhere := decision{verdict: verdictWrite}, decision{verdictElsewhere, "b has these seconds"}
	undecided := decision{verdictMissing, "b has these seconds; whether it is a replica is undecided"}
	for name, tc := range map[string]struct {
		spans  []span
		second int64
		want   decision
	}{
		"gaps of one":    {append(withGaps("", 1), span{"b", 11, 1, 2000}), 100, write},
		"gaps of both":   {append(withGaps("", 1), withGaps("b", 61)...), 100, undecided},
		"one gap of one": {[]span{{"", 11, 1, 900}, {"", 11, 1000, 2000}, {"b", 11, 1, 2000}}, 950, write},
		"a takeover":     {[]span{{"", 11, 1, 1000}, {"b", 11, 881, 2000}}, 1500, elsewhere},
		"two takeovers": {
			[]span{{"", 11, 1, 600}, {"b", 11, 481, 1300}, {"", 11, 1181, 2000}}, 800, elsewhere,
		},
	} {
		if d := newWorld(t, list, tc.spans...).decide(tc.second); d != tc.want {
			t.Errorf("%s: %+v, want %+v", name, d, tc.want)
		}
	}
}
