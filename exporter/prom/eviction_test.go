package prom_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// from returns the scraper at another address.
func (r scraper) from(host string) scraper {
	r.host = host
	return r
}

// A client requests made-up cursors until the table is full. New scrapers are still admitted from any address, and
// scrapers in regular use keep their positions, even at the client's address.
func TestMadeUpCursors(t *testing.T) {
	names := 100
	if *attack {
		names = 100_000
	}
	for name, stranger := range map[string]string{"IPv4": "192.0.2.66", "IPv6": "[2001:db8:0:66:%x::1]"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, now := service(t, collector.Options{})
				c.Resource("a")
				page := newScraper(t, c, prom.SecondsOptions{MaxCursors: 50})
				regular := []scraper{page.from("10.0.0.1"), page.from("10.0.0.2"), page.from("192.0.2.66")}
				scrape := func() {
					time.Sleep(15 * time.Second)
					*now = now.Add(15 * time.Second)
					for _, r := range regular {
						if n := len(r.seconds("cursor=mine", "persecond_pass")); n != 15 {
							t.Errorf("%s has %d seconds, want 15", r.host, n)
						}
					}
				}
				for range 4 {
					scrape()
				}
				for i := range names {
					if i == names/3 { // new scrapers arrive; then the client continues
						for i := range 10 {
							added := page.from(fmt.Sprint("10.0.1.", i))
							if code := added.get("cursor=mine").Code; code != http.StatusOK {
								t.Errorf("new scraper: status %d", code)
							}
						}
					}
					from := stranger
					if name == "IPv6" {
						from = fmt.Sprintf(stranger, i%0xffff) // all addresses of a network count as one host
					}
					if code := page.from(from).get(fmt.Sprint("cursor=made-up-", i)).Code; code != http.StatusOK {
						t.Fatalf("made-up cursor %d: %d", i, code)
					}
				}
				regular = append(regular, page.from("10.0.1.0"))
				scrape()
				if got, want := page.page.Counts()["cursor_evictions_total"], float64(3+names+10-50); got != want {
					t.Errorf("%v evictions, want %v", got, want)
				}
			})
		})
	}
}

// The same holds across restarts, which do not refresh the time of last use.
func TestMadeUpCursorsAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 300e6, time.UTC)
	p := begin(t, dir, &at)
	step := func(after time.Duration) {
		t.Helper()
		p.stats.Resource("a").Block("")
		at = at.Add(after)
		if err := p.log.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	step(10 * time.Second)
	p.get("cursor=mine")
	for i := range 300 {
		p.from("192.0.2.66").get(fmt.Sprint("cursor=made-up-", i))
	}
	path := filepath.Join(dir, "shop-cursors.json")
	type position struct {
		Cursor, Client string
		Asks           string `json:",omitempty"`
		Next           int64
		Used           int64 `json:",omitempty"`
	}
	read := func() (list []position) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := read()
	if len(list) != prom.DefaultMaxCursors {
		t.Errorf("%d positions in the file", len(list))
	}
	// The made-up cursors were last used an hour ago.
	for i := range list {
		list[i].Used -= 3600
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p = begin(t, dir, &at)
	step(time.Second)
	if n := len(p.seconds("cursor=mine", "persecond_block")); n != 1 {
		t.Errorf("%d seconds after the restart, want the new one", n)
	}
	if code := p.from("10.0.0.2").get("cursor=new").Code; code != http.StatusOK {
		t.Errorf("new scraper: status %d", code)
	}
	old := 0
	for _, x := range read() {
		if time.Since(time.Unix(x.Used, 0)) > 30*time.Minute {
			old++
		} else if x.Client == "192.0.2.66" {
			t.Errorf("the restart refreshed %s", x.Cursor)
		}
	}
	if old != prom.DefaultMaxCursors-2 {
		t.Errorf("%d cursors are old, want all except the two that were used", old)
	}
	step(time.Second)
	if n := len(p.seconds("cursor=mine", "persecond_block")); n != 1 {
		t.Errorf("%d seconds in the next response, want the new one", n)
	}
}

// A Prometheus that scrapes ten jobs regularly keeps its positions while 130 clients, each from its own address,
// request new cursors again and again. The same holds after a restart, which refreshes no cursor.
func TestRegularScrapersAreEvictedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := time.Now()
		p := begin(t, dir, &at)
		jobs := func(t *testing.T, want int) {
			t.Helper()
			p.stats.Resource("a").Block("")
			time.Sleep(15 * time.Second)
			at = time.Now()
			if err := p.log.Flush(); err != nil {
				t.Fatal(err)
			}
			for job := range 10 {
				if n := len(p.from("10.0.0.1").seconds(fmt.Sprint("cursor=job-", job), "persecond_block")); n != want {
					t.Errorf("job %d has %d seconds, want %d", job, n, want)
				}
			}
		}
		strangers := func() {
			for i := range 130 {
				for range 2 {
					p.from(fmt.Sprintf("192.0.2.%d", i)).get("cursor=mine")
				}
			}
		}
		for range 4 {
			jobs(t, 15)
		}
		rounds := 3
		if testing.Short() {
			rounds = 1
		}
		for range rounds {
			strangers()
			jobs(t, 15)
		}
		p = p.again(t, dir, &at)
		strangers()
		jobs(t, 15)
	})
}

// One host requests more cursors than the table holds, all at a steady pace, and adds new ones all the time. A new
// scraper without history is admitted and keeps its cursor.
func TestOneHostCannotFillTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, now := service(t, collector.Options{})
		c.Resource("a")
		page := newScraper(t, c, prom.SecondsOptions{MaxCursors: 50})
		host, scraper := page.from("192.0.2.66"), page.from("10.0.0.1")
		for round := range 20 {
			time.Sleep(15 * time.Second)
			*now = now.Add(15 * time.Second)
			if round >= 10 {
				if n := len(scraper.seconds("cursor=mine", "persecond_pass")); round > 10 && n != 15 {
					t.Errorf("new scraper: %d seconds, want 15", n)
				}
			}
			for i := range 50 {
				host.get(fmt.Sprint("cursor=steady-", i))
				if round > 5 {
					host.get(fmt.Sprint("cursor=new-", round, "-", i))
				}
			}
		}
	})
}

// The host with the most cursors loses its least recently used one. Behind a trusted proxy, the host is the client that
// the proxy reports.
func TestEvictedCursor(t *testing.T) {
	c, now := service(t, collector.Options{})
	c.Resource("a")
	page := newScraper(t, c, prom.SecondsOptions{MaxCursors: 6})
	*now = now.Add(5 * time.Second)
	use := func(host, cursor string) { page.from(host).get("cursor=" + cursor) }
	knows := func(host, cursor string) bool {
		_, ok := page.page.Counts()[fmt.Sprintf("cursor_lag_seconds[%s %s]", host, cursor)]
		return ok
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		use("10.0.0.1", name)
	}
	use("10.0.0.2", "a")
	use("10.0.0.2", "b")
	use("10.0.0.1", "a") // again
	use("10.0.0.3", "a")
	use("10.0.0.3", "b")
	for who, want := range map[[2]string]bool{
		{"10.0.0.1", "a"}: true, {"10.0.0.1", "b"}: false, {"10.0.0.1", "c"}: false, {"10.0.0.1", "d"}: true,
		{"10.0.0.2", "a"}: true, {"10.0.0.2", "b"}: true, {"10.0.0.3", "a"}: true, {"10.0.0.3", "b"}: true,
	} {
		if got := knows(who[0], who[1]); got != want {
			t.Errorf("%v is in the table: %t", who, got)
		}
	}
	// Each host has two cursors: evicts the least recently used one of the cursors that were used once.
	use("10.0.0.4", "a")
	if knows("10.0.0.1", "d") {
		t.Error("the least recently used cursor was not evicted")
	}
}
