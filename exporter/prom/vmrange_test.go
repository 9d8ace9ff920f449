package prom_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// With histogram=vmrange the page has the histogram of each second alone, as text. Empty buckets have no lines.
func TestHistogramByRange(t *testing.T) {
	c, now := service(t, collector.Options{})
	c.Record("a", collector.Completed{RT: 600 * ms})
	c.Record("a", collector.Completed{RT: 600 * ms})
	*now = now.Add(time.Second)
	c.Record("a", collector.Completed{RT: time.Microsecond})
	*now = now.Add(time.Second)
	read := newScraper(t, c, prom.SecondsOptions{})
	rec := read.get("histogram=vmrange&metric=persecond_rt_max_seconds")
	if got := rec.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("Content-Type is %s", got)
	}
	_, got, _ := strings.Cut(rec.Body.String(), "# TYPE windowstat_persecond_rt_distribution_seconds gaugehistogram\n")
	const name = "windowstat_persecond_rt_distribution_seconds"
	want := name + `_bucket{resource="a",vmrange="5.946e-01...6.484e-01"} 2 1767323045000
` + name + `_sum{resource="a"} 1.2 1767323045000
` + name + `_count{resource="a"} 2 1767323045000
` + name + `_bucket{resource="a",vmrange="9.537e-07...1.040e-06"} 1 1767323046000
` + name + `_sum{resource="a"} 1e-06 1767323046000
` + name + `_count{resource="a"} 1 1767323046000
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A page with histogram=vmrange respects the limits on responses for any number of non-empty buckets, because
// VictoriaMetrics drops larger responses entirely.
func TestHistogramByRangeIsBounded(t *testing.T) {
	c, now := service(t, collector.Options{})
	for range 50 {
		for rt := time.Microsecond; rt < time.Minute; rt += rt / 8 {
			c.Record("a", collector.Completed{RT: rt})
		}
		*now = now.Add(time.Second)
	}
	const most = 100_000
	read := newScraper(t, c, prom.SecondsOptions{MaxBytes: most})
	seconds, pages := 0, 0
	for ; seconds < 50 && pages < 50; pages++ {
		body := read.get("cursor=a&histogram=vmrange").Body.String()
		if len(body) > most {
			t.Errorf("page %d has %d bytes", pages, len(body))
		}
		seconds += strings.Count(body, "windowstat_persecond_rt_distribution_seconds_count{")
	}
	if seconds != 50 || pages < 3 {
		t.Error(fmt.Sprint(seconds, " seconds in ", pages, " pages"))
	}
}
