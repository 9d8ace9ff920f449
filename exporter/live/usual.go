package live

import (
	"time"

	"github.com/windowstat/windowstat/internal/trouble"
	"github.com/windowstat/windowstat/node"
)

// The usual numbers of a resource (see [trouble.Usual]) are read once a minute, from windows of its last ten minutes.
const (
	usualReads  = 200                          // maximum number of resources that are read for one snapshot
	usualRetry  = 10                           // seconds until the next read if the numbers are unknown
	usualPeriod = minute                       // seconds between two reads
	maxKept     = int(time.Hour / time.Minute) // reads that are left out while the resource is in trouble
)

// readUsual reads the usual numbers that are due, up to the limit for one snapshot. It keeps those of resources in
// trouble, because trouble would become usual after some minutes. f.entriesMu must be held.
func (f *feed) readUsual(entries []*entry, open int64) {
	var records []node.MetricNode
	left := usualReads
	for _, e := range entries {
		if e.usualDue > open {
			continue
		}
		if left--; left < 0 {
			return
		}
		e.usualDue = open + usualPeriod
		if e.troubled.Load() && e.kept < maxKept {
			e.kept++
			continue
		}
		e.kept = 0
		var windows [][]trouble.Second
		trouble.Windows(func(from, to int64) {
			records = e.View().Node().AppendSeconds(records[:0], open+from, open+to)
			if len(records) > 0 {
				windows = append(windows, appendSeconds(nil, records))
			}
		})
		u := trouble.NewUsual(windows)
		if e.usual.Store(&u); !u.Known {
			e.usualDue = open + usualRetry
		}
	}
}

// appendSeconds converts records.
func appendSeconds(to []trouble.Second, records []node.MetricNode) []trouble.Second {
	for i := range records {
		m := &records[i]
		to = append(to, trouble.Second{
			Pass: m.Pass, Block: m.Block, Complete: m.Complete, Exception: m.Exception,
			InFlight: m.InFlight, RTSum: m.RTSum, RTMax: m.RTMax,
		})
	}
	return to
}

// usualNumbers returns the usual numbers of a resource, which may be unknown.
func (e *entry) usualNumbers() *trouble.Usual {
	if u := e.usual.Load(); u != nil {
		return u
	}
	return new(trouble.Usual)
}
