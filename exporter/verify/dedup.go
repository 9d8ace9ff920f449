package verify

import (
	"context"
	"slices"

	"github.com/windowstat/windowstat/internal/redact"
)

// noteDeduplication adds a note to the report if the database keeps one second of each interval, for most of the
// range. VictoriaMetrics does so with -dedup.minScrapeInterval: for each integer k it keeps the last sample of a
// series that is later than (k-1)*N and not later than k*N. Samples of every second then remain at the multiples of
// N. Downsampling works in the same way.
//
// The run metric shows which seconds the database has: every second of a process has one sample of the run metric,
// whichever metrics and resources the scraper selects. noteDeduplication reads the run metric in parts of six hours.
// VictoriaMetrics also returns the last sample before the end of a query, even if the sample is not at the end of an
// interval. The parts of the comparison are smaller and would therefore show many such samples.
func (c *comparison) noteDeduplication(ctx context.Context) {
	if r := &c.report; r.Missing*3 < r.Seconds { // even an interval of two seconds loses half of them
		return
	}
	run := selector([]string{c.log.runs.metric}, c.report.Labels)
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	var seconds []int64
	for at := from; at <= to; at += runsPerQuery {
		err := bisect(at, min(at+runsPerQuery-1, to), func(from, to int64) error {
			all, err := c.samples(ctx, run, from, to)
			for _, s := range all {
				for _, x := range s.points {
					if x.at%1000 == 0 {
						seconds = append(seconds, x.at/1000)
					}
				}
			}
			return err
		})
		if err != nil {
			c.noteIf(true, "cannot check the database for deduplication: %s", redact.Line(err.Error()))
			return
		}
	}
	n := interval(seconds, c.report.Seconds)
	c.noteIf(n > 0, "the database keeps one second of every %d, the last, as VictoriaMetrics does "+
		"with -dedup.minScrapeInterval=%ds or downsampling: set -dedup.minScrapeInterval=1ms", n, n)
}

// minIntervals is the minimum number of equal intervals. Fewer may be a coincidence.
const minIntervals = 3

// interval returns the length of the intervals that end at the seconds. An interval counts if it is longer than a
// second and ends at a multiple of its length. The result is 0 unless at least minIntervals have the same length and
// cover more than half of the logged seconds.
func interval(seconds []int64, logged int64) int64 {
	slices.Sort(seconds)
	counts := map[int64]int64{}
	for i, second := range seconds[min(1, len(seconds)):] {
		if n := second - seconds[i]; n > 1 && second%n == 0 {
			counts[n]++
		}
	}
	for n, count := range counts {
		if count >= minIntervals && 2*n*count > logged { // no other length covers as much
			return n
		}
	}
	return 0
}
