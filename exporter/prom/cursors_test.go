package prom

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windowstat/windowstat/internal/fairshare"
)

// goes returns the cursor that goes for one of a host, as a look at all of them finds it.
func (c *cursors) goes(host string, now time.Time) *cursor {
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

// Whatever scrapers come, steadily or not, from wherever a proxy says, the cursor that goes is the one that a look at all finds.
func TestCursorsAtRandom(t *testing.T) {
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
			var goes *cursor
			if c.all[who] == nil && len(c.all) == c.max {
				goes = c.goes(host, now)
				gone++
			}
			x := c.get(who, host, 0, now)
			if goes != nil && c.all[goes.scraper] != nil {
				t.Fatalf("seed %d: another one goes than %v of %s", seed, goes.scraper, goes.entry.Host)
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

// A new cursor takes the place of another one.
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
