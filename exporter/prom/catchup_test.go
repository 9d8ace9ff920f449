package prom

import (
	"fmt"
	"testing"
	"time"
)

// Large responses break, and smaller ones follow. They are never so small that seconds leave the history meanwhile which a
// large one would have saved: of a scraper that comes rarely, too.
func TestCatchingUpIsFasterThanTheHistoryRunsOut(t *testing.T) {
	const history = 600
	for _, interval := range []int64{1, 5, 15, 60, 120, 200, 250, 285, 300} {
		for _, late := range []int64{0, interval / 20} { // every second request, and the one before is as much earlier
			for broken := int64(1); (broken+1)*interval+late <= history && broken <= 4; broken++ {
				t.Run(fmt.Sprintf("every %d s or %d s later, %d broken", interval, late, broken), func(t *testing.T) {
					x := newCursor(scraper{}, 0, time.Time{})
					state, now := connUsedAgain, int64(0)
					for n := int64(1); n <= 100; n++ {
						now = n * interval
						if n%2 == 0 {
							now += late
						}
						a := &response{conn: &conn{}, after: &aftermath{state: state}, timeout: time.Minute}
						x.settle(a)
						from, most := x.begin(time.Unix(now, 0), now, history)
						to := min(now, from+most)
						x.sent(a, from, to, int(to-from)*10_000, true)
						if state = connUsedAgain; n > 10 && n <= 10+broken {
							state = connBroken
						}
					}
					if x.count.lost != 0 || x.count.unconfirmed != 0 {
						t.Errorf("%+v", x.count)
					}
					if x.next != now {
						t.Errorf("it is %d s behind after 100 requests", now-x.next)
					}
				})
			}
		}
	}
}
