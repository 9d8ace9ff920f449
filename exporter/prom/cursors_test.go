package prom

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// evictee returns the cursor to evict for a new cursor of host. It scans all cursors.
func (c *cursors) evictee(host string, now time.Time) *cursor {
	hosts := map[string]int{}
	for _, x := range c.all {
		hosts[x.entry.Host]++
	}
	has := func(x *cursor) int {
		if n := hosts[x.entry.Host]; n > fairshare.Kept {
			return n
		}
		return 0
	}
	steady := func(x *cursor) time.Duration {
		if now.Sub(x.lastRequest) > maxInterval {
			return 0
		}
		return x.steady
	}
	var out *cursor
	for _, x := range c.all {
		if hosts[host] >= max(c.max/4, fairshare.Kept) && x.entry.Host != host {
			continue
		}
		if out == nil ||
			cmp.Or(
				cmp.Compare(steady(x), steady(out)),
				cmp.Compare(has(out), has(x)),
				x.lastRequest.Compare(out.lastRequest),
			) < 0 {
			out = x
		}
	}
	return out
}

// For random scrapers, steady or not, with any client name from a proxy, the evicted cursor is the one that a full scan
// finds.
func TestEvictionOfRandomCursors(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		c, now := newCursors(4+random.IntN(30), DefaultCursorExpiry, nil), time.Now()
		hosts := 1 + random.IntN(20)
		gone := 0
		for range 2000 {
			now = now.Add(time.Duration(1 + random.ExpFloat64()*float64(20*time.Second)))
			if random.IntN(200) == 0 {
				now = now.Add(maxInterval)
			}
			host := fmt.Sprint("host ", random.IntN(hosts))
			who := scraper{Cursor: fmt.Sprint(int(random.ExpFloat64() * 20))}
			if random.IntN(20) > 0 {
				who.Client = host
			}
			var evictee *cursor
			if c.all[who] == nil && len(c.all) == c.max {
				evictee = c.evictee(host, now)
				gone++
			}
			x := c.get(who, host, 0, now)
			if evictee != nil && c.all[evictee.scraper] != nil {
				t.Fatalf("seed %d: evicted a different cursor than %v of %s", seed, evictee.scraper, evictee.entry.Host)
			}
			if c.all[who] != x || x.entry.Host != host || c.order.Len() != len(c.all) || len(c.all) > c.max {
				t.Fatalf("seed %d: %d cursors, and %d in order", seed, len(c.all), c.order.Len())
			}
		}
		if c.evicted.Load() != int64(gone) || gone == 0 {
			t.Fatalf("%d evictions, want %d", c.evicted.Load(), gone)
		}
	}
}

// Each iteration adds a cursor to a full table, which evicts another cursor.
func BenchmarkNewCursor(b *testing.B) {
	for _, most := range []int{DefaultMaxCursors, 10 * DefaultMaxCursors} {
		b.Run(fmt.Sprint("cursors=", most), func(b *testing.B) {
			c, now := newCursors(most, DefaultCursorExpiry, nil), time.Now()
			come := func(i int) {
				host := fmt.Sprint("10.0.0.", i%100)
				c.get(scraper{Cursor: fmt.Sprint(i), Client: host}, host, 0, now.Add(time.Duration(i)))
			}
			i := 0
			for ; i < most; i++ {
				come(i)
			}
			for ; b.Loop(); i++ {
				come(i)
			}
		})
	}
}
