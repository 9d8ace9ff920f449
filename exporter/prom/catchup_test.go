package prom

import (
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// plainLine returns a line on which earlier processes counted all seconds of a test.
func plainLine(t *testing.T) *seconds.Line {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return seconds.NewLine(c)
}

// Large responses break, and smaller ones follow. The smaller responses are large enough: no second leaves the history
// that a large response would have delivered, even if the scraper reads rarely.
func TestCatchUpBeforeSecondsLeaveTheHistory(t *testing.T) {
	const history = 600
	for _, interval := range []int64{1, 5, 15, 60, 120, 200, 250, 285, 300} {
		// Every other request is late: the interval before it is longer, and the interval after it is shorter.
		for _, late := range []int64{0, interval / 20} {
			for lost := int64(1); (lost+1)*interval+late <= history && lost <= 4; lost++ {
				t.Run(fmt.Sprintf("every %d s, or %d s late, %d broken", interval, late, lost), func(t *testing.T) {
					x := newCursors(1, DefaultCursorExpiry, plainLine(t)).get(scraper{}, "", 0, time.Time{})
					state, now := acknowledged, int64(0)
					for n := int64(1); n <= 100; n++ {
						now = n * interval
						if n%2 == 0 {
							now += late
						}
						if x.pending != nil {
							x.settle(state)
						}
						from, end, most := x.begin(time.Unix(now, 0), now-history, now)
						to := min(end, from+most)
						x.sent(new(response), from, to, int(to-from)*10_000, true, 0)
						if state = acknowledged; n > 10 && n <= 10+lost {
							state = broken
						}
					}
					if x.count.lost != 0 || x.count.unconfirmed != 0 {
						t.Errorf("%+v", x.count)
					}
					if x.Next != now {
						t.Errorf("the cursor lags by %d s after 100 requests", now-x.Next)
					}
				})
			}
		}
	}
}
