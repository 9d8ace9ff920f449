package incident

import (
	"time"

	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/internal/trouble"
)

// usualEvery is the number of seconds between two computations of the usual numbers of a resource. The live page uses
// the same interval.
const usualEvery = 60

// troubles finds the trouble of a resource in a recording with the rule of the live page. first is the Unix time of the
// first second of the recording, and seconds is its length.
//
// The log has neither the slowest calls nor the ages of calls. Therefore troubles finds a hang only if no call ends,
// and a slowdown only in the average response time.
//
// The rule compares a window of seconds with the usual numbers of the resource. troubles moves the window over the
// recording, one second at a time, and joins consecutive windows with the same kind of trouble.
func (r *resource) troubles(first int64, seconds int) (list []live.RecordedTrouble) {
	all := r.seconds(first, seconds)
	var usual trouble.Usual
	due := 0
	// end is the first second after the window.
	for end := trouble.Window; end <= seconds; end++ {
		c := trouble.Current{Seconds: all[end-trouble.Window : end], InFlight: all[end-1].InFlight}
		found := trouble.Find(&usual, c)
		if len(found) == 0 && end >= due { // a resource in trouble keeps its usual numbers
			if usual = usualBefore(all[:end]); usual.Known {
				due = end + usualEvery
			}
		}
		if len(found) == 0 {
			continue
		}
		// Find returns the worst trouble first.
		worst := found[0]
		x := live.RecordedTrouble{First: end - 1, End: end, Kind: int(worst.Kind), Text: trouble.Words(found)}
		// A worse kind has a higher rank, whatever the severity: 1e12 is larger than any severity that occurs.
		x.Rank = float64(worst.Kind)*1e12 + worst.Severity()
		if n := len(list); n > 0 && list[n-1].End == end-1 && list[n-1].Kind == x.Kind {
			last := &list[n-1]
			if last.End = end; x.Rank > last.Rank {
				last.Rank, last.Text = x.Rank, x.Text
			}
			continue
		}
		list = append(list, x)
	}
	return list
}

// usualBefore returns the usual numbers of a resource at the end of seconds. The windows of package trouble select the
// seconds to compare.
func usualBefore(seconds []trouble.Second) trouble.Usual {
	var windows [][]trouble.Second
	trouble.Windows(func(from, to int64) {
		if n := int64(len(seconds)); n+from >= 0 {
			windows = append(windows, seconds[n+from:n+to])
		}
	})
	return trouble.NewUsual(windows)
}

// seconds returns n seconds of a resource from first on. A second without a row has no calls.
func (r *resource) seconds(first int64, n int) []trouble.Second {
	list := make([]trouble.Second, n)
	for i := range r.rows {
		x := &r.rows[i]
		if at := x.at - first; at >= 0 && at < int64(n) {
			list[at] = trouble.Second{
				Pass: int64(x.v[pass]), Block: int64(x.v[block]),
				Complete: int64(x.v[complete]), Exception: int64(x.v[exception]),
				InFlight: int64(x.v[inFlight]),
				RTSum:    time.Duration(x.v[rtMs]) * time.Duration(x.v[complete]) * time.Millisecond,
			}
		}
	}
	return list
}
