package live

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/node"
)

// The baseline p99 of a resource is the median of the slowest calls of some past seconds. The records of seconds have
// no p99, but of up to a hundred calls the slowest one is the p99. Once a minute, readBaselines reads the baseline of
// each resource from the last ten minutes without the current one:
//
//	-600 s    -540 s    -480 s                    -120 s     -60 s       now
//	 |====......|====......|====......   ...   ......|====......|..........|
//
//	====  baselineSample seconds, read
//	....  the rest of the minute, not read
const (
	baselineReads      = 200 // maximum number of resources that are read for one snapshot
	baselineSample     = 10  // seconds that are read from each minute
	minBaselineSeconds = 10  // with fewer seconds that have completed calls, the baseline is unknown
)

// readBaselines reads the baselines that are due, up to the limit for one snapshot. f.entriesMu must be held.
func (f *feed) readBaselines(entries []*entry, open int64) {
	var list []node.MetricNode
	var slowest []time.Duration
	left := baselineReads
	for _, e := range entries {
		if e.baselineDue > open {
			continue
		}
		if left--; left < 0 {
			return
		}
		e.baselineDue = open + minute
		list = list[:0]
		for from := open - keptSeconds; from < open-minute; from += minute {
			list = e.View().Node().AppendSeconds(list, from, from+baselineSample)
		}
		slowest = slowest[:0]
		for i := range list {
			if list[i].Complete > 0 {
				slowest = append(slowest, list[i].RTMax)
			}
		}
		baseline := time.Duration(0)
		if len(slowest) >= minBaselineSeconds {
			slices.Sort(slowest)
			baseline = slowest[len(slowest)/2]
		}
		e.baseline.Store(int64(baseline))
	}
}

// slowdown returns the p99 divided by the baseline, in tenths. It returns 0 if the p99 is less than twice the baseline
// or less than a millisecond above it: neither is worth a user's attention.
func (x *row) slowdown() int64 {
	baseline := x.baseline.Load()
	if p99 := int64(x.p99); baseline > 0 && p99 >= 2*baseline && p99-baseline >= int64(time.Millisecond) {
		return 10 * p99 / baseline
	}
	return 0
}
