package live

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/node"
)

// What response times are usual is read from the last ten minutes, for each resource once a minute: the median of the slowest
// call of a second. Records of seconds have no p99, but that of up to a hundred calls is the slowest one.
const (
	usualReads  = 200 // resources in a second at most
	usualSample = 10  // seconds of each minute that are read
	usualLeast  = 10  // seconds with calls, or nothing is usual
)

// readUsual reads what is usual for those entries that are due.
func (f *feed) readUsual(entries []*entry, open int64) {
	var list []node.MetricNode
	var slowest []time.Duration
	left := usualReads
	for _, e := range entries {
		if e.due > open {
			continue
		}
		if left--; left < 0 {
			return
		}
		e.due = open + minute
		list = list[:0]
		for from := open - keptSeconds; from < open-minute; from += minute {
			list = e.view().AppendSeconds(list, from, from+usualSample)
		}
		slowest = slowest[:0]
		for i := range list {
			if list[i].Complete > 0 {
				slowest = append(slowest, list[i].RTMax)
			}
		}
		usual := time.Duration(0)
		if len(slowest) >= usualLeast {
			slices.Sort(slowest)
			usual = slowest[len(slowest)/2]
		}
		e.usual.Store(int64(usual))
	}
}

// slower is how many times the p99 is what is usual, in tenths; 0 if that is not worth a look.
func (x *row) slower() int64 {
	usual := x.usual.Load()
	if p99 := int64(x.p99); usual > 0 && p99 >= 2*usual && p99-usual >= int64(time.Millisecond) {
		return 10 * p99 / usual
	}
	return 0
}
