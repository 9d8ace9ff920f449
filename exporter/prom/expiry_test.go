package prom_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/prom"
)

// A scraper is removed. A day after its last request its cursor and its lag are removed, whether or not the service was
// restarted since; after another day its position is in no file. A scraper that continues keeps its cursor.
func TestRemovedScrapersExpire(t *testing.T) {
	for name, restarts := range map[string]bool{"one process": false, "with restarts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				at := time.Now()
				p := begin(t, dir, &at)
				p.stats.Resource("a").Block("")
				p.get("cursor=removed")
				lags := func(cursor string) bool {
					_, is := p.page.Counts()["cursor_lag_seconds[10.0.0.1 "+cursor+"]"]
					return is
				}
				for hour := range 26 {
					if want := hour < 25; lags("removed") != want { // at hour 24 less than a day has passed
						t.Errorf("after %d hours its lag exists: %t", hour, !want)
					}
					time.Sleep(time.Hour)
					at = time.Now()
					p.stats.Resource("a").Block("")
					p.get("cursor=mine")
					if restarts && hour%5 == 3 {
						p = p.again(t, dir, &at)
					}
					if !lags("mine") {
						t.Error("no lag of the scraper in use")
					}
				}
				b, err := os.ReadFile(filepath.Join(dir, "shop-cursors.json"))
				if err != nil || strings.Contains(string(b), "removed") || !strings.Contains(string(b), "mine") {
					t.Errorf("file: %s (%v)", b, err)
				}
				// Fills the table; the removed cursor is not evicted a second time.
				for i := range prom.DefaultMaxCursors {
					p.from(fmt.Sprint("192.0.2.", i)).get("cursor=new")
				}
				n := 0
				for name := range p.page.Counts() {
					if strings.HasPrefix(name, "cursor_lag_seconds[") {
						n++
					}
				}
				if n != prom.DefaultMaxCursors {
					t.Errorf("%d cursors, want %d", n, prom.DefaultMaxCursors)
				}
			})
		})
	}
}
