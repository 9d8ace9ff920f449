package prom_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// process represents one run of a service with a metric log.
type process struct {
	scraper
	stats *collector.Collector
	log   *metriclog.Writer
}

func begin(t *testing.T, dir string, now *time.Time) process {
	t.Helper()
	o := metriclog.Options{
		Dir:         dir,
		App:         "shop",
		MaxFileSize: 4 << 10,
		MaxFiles:    1000,
		Logger:      slog.New(slog.DiscardHandler),
	}
	last, err := metriclog.Last(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return *now }, After: last})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return process{newScraper(t, c, prom.SecondsOptions{Log: w, MaxSamples: 2000, Logger: o.Logger}), c, w}
}

// again starts the next process. This process has ended and released the log.
func (p process) again(t *testing.T, dir string, now *time.Time) process {
	t.Helper()
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	return begin(t, dir, now)
}

// A service is killed repeatedly at random. Its scraper gets every logged second once, with the value in the log, from
// any of the processes.
func TestRestarts(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		at := time.Date(2026, 1, 2, 23, 58, 0, 300e6, time.UTC) // shortly before midnight
		now := &at
		got := map[string]float64{}
		want := map[string]float64{} // blocks in the log
		resent := 0
		collect := func(p process, metric string) int {
			from := p.seconds("cursor=a", metric)
			for k, v := range from {
				if _, twice := got[k]; twice {
					resent++
				}
				got[k] = v
			}
			return len(from)
		}
		p := begin(t, dir, now)
		for range 600 {
			for i := range 1 + random.IntN(3) {
				for range random.IntN(4) {
					p.stats.Resource(fmt.Sprint("r|", i)).Block("")
				}
			}
			*now = now.Add(time.Duration(random.IntN(1500)) * time.Millisecond)
			if random.IntN(2) == 0 {
				if err := p.log.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			switch random.IntN(40) {
			case 0:
				*now = now.Add(time.Duration(random.IntN(3)*random.IntN(20)) * time.Second)
				p = p.again(t, dir, now)
			case 1, 2:
				// Seconds that were not logged are lost with the process, so the scraper reads after the log is
				// flushed.
				if err := p.log.Flush(); err != nil {
					t.Fatal(err)
				}
				collect(p, "persecond_block")
			}
		}
		if err := p.log.Flush(); err != nil {
			t.Fatal(err)
		}
		for collect(p, "persecond_block") > 0 {
		}
		files, err := p.log.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				row, err := metriclog.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(row.Resource, " ", row.Start.Unix())
				if _, twice := want[key]; twice {
					t.Fatalf("duplicate %s in the log", key)
				}
				want[key] = float64(row.Block)
			}
		}
		for k, v := range got {
			if want[k] != v {
				t.Errorf("%s is %v, and %v in the log", k, v, want[k])
			}
		}
		for k := range want {
			if _, read := got[k]; !read && !strings.HasPrefix(k, collector.InboundTotal) {
				t.Errorf("%s was logged but not read", k)
			}
		}
		if resent > 0 || len(want) < 300 {
			t.Errorf("%d of %d seconds were sent twice", resent, len(want))
		}
	}
}

// Seconds from the log have only the metrics of the log. Idle seconds are zero if another resource was busy.
func TestSecondsFromTheLog(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := begin(t, dir, &at)
	e := p.stats.Resource("a").Enter()
	at = at.Add(100 * ms)
	e.Exit(nil)
	for range 2 { // a is idle and b is busy for two seconds; then both are idle
		at = at.Add(time.Second)
		p.stats.Resource("b\n\"").Block("")
	}
	at = at.Add(3 * time.Second)
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	p = p.again(t, dir, &at)
	const want = `persecond_pass{resource="a"} 1 1767323045000
persecond_pass{resource="a"} 0 1767323046000
persecond_pass{resource="a"} 0 1767323047000
persecond_pass{resource="b\n\""} 0 1767323046000
persecond_pass{resource="b\n\""} 0 1767323047000
persecond_block{resource="a"} 0 1767323045000
persecond_block{resource="a"} 0 1767323046000
persecond_block{resource="a"} 0 1767323047000
persecond_block{resource="b\n\""} 1 1767323046000
persecond_block{resource="b\n\""} 1 1767323047000
persecond_in_flight_max{resource="a"} 1 1767323045000
persecond_in_flight_max{resource="a"} 0 1767323046000
persecond_in_flight_max{resource="a"} 0 1767323047000
persecond_in_flight_max{resource="b\n\""} 0 1767323046000
persecond_in_flight_max{resource="b\n\""} 0 1767323047000
`
	var got strings.Builder
	query := "cursor=x"
	for _, metric := range []string{"pass", "block", "in_flight_max", "rt_max_seconds", "pass_peak"} {
		query += "&metric=persecond_" + metric
	}
	for line := range strings.Lines(p.get(query).Body.String()) {
		if !strings.HasPrefix(line, "#") {
			got.WriteString(strings.TrimPrefix(line, "windowstat_"))
		}
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	for window, want := range map[string]int{"2s": 0, "3s": 1, "5s": 3} {
		if n := len(p.seconds("resource=a&window="+window, "persecond_pass")); n != want {
			t.Errorf("%d seconds of the last %s, want %d", n, window, want)
		}
	}
}

// The file of positions was destroyed by a power failure or by hand. The service starts, logs this once, and keeps the
// file for inspection. Scrapers only get some seconds again.
func TestUnreadablePositions(t *testing.T) {
	for _, content := range []string{"", "\x00\x00\x00\x00", "[{", "{}", `[{"Cursor":7}]`, `[{"Next":"soon"}]`} {
		t.Run(fmt.Sprintf("%q", content), func(t *testing.T) {
			dir := t.TempDir()
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			p := begin(t, dir, &at)
			p.stats.Resource("a").Block("")
			at = at.Add(10 * time.Second)
			if n := len(p.seconds("cursor=x", "persecond_block")); n != 10 {
				t.Fatalf("%d seconds before, want 10", n)
			}
			if err := errors.Join(p.log.Flush(), p.log.Close()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "shop-cursors.json")
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}

			p = begin(t, dir, &at)
			if got := p.page.Counts()["cursor_save_errors_total"]; got != 1 {
				t.Errorf("%v errors, want 1", got)
			}
			if b, err := os.ReadFile(path + ".unreadable"); err != nil || string(b) != content {
				t.Errorf("set aside: %q, %v", b, err)
			}
			p.stats.Resource("a").Block("")
			at = at.Add(time.Second)
			if n := len(p.seconds("cursor=x", "persecond_block")); n < 2 {
				t.Errorf("%d seconds afterwards, want those in the log and the new one", n)
			}
			p = p.again(t, dir, &at)
			p.stats.Resource("a").Block("")
			at = at.Add(time.Second)
			if n := len(p.seconds("cursor=x", "persecond_block")); n != 1 {
				t.Errorf("%d seconds after the next restart, want 1, because the position is saved again", n)
			}
		})
	}
}

// A position saved while the clock was wrong does not block a scraper.
func TestPositionsOfTheFuture(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	p := begin(t, dir, &at)
	p.stats.Resource("a")
	at = at.Add(time.Second)
	p.get("cursor=x")
	at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p = p.again(t, dir, &at)
	p.stats.Resource("a")
	at = at.Add(10 * time.Second)
	if n := len(p.seconds("cursor=x", "persecond_pass")); n != 10 {
		t.Errorf("%d seconds, want 10", n)
	}
}

// A process is killed before it logs the last seconds that it sent, and the next process starts in the same second. The
// seconds in doubt that are in the log are sent again. The names of later seconds exist twice: the scraper has the
// values of the first process, so the seconds of the second process count as lost.
func TestSecondsInDoubtBeforeReusedNames(t *testing.T) {
	dir := t.TempDir()
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := first
	p := begin(t, dir, &at)
	for range 10 {
		p.stats.Resource("a").Block("")
		at = at.Add(time.Second)
	}
	if n := len(p.seconds("cursor=x", "persecond_block")); n != 10 {
		t.Fatalf("%d seconds, want 10", n)
	}
	if err := errors.Join(p.log.Flush(), p.log.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "shop-cursors.json")
	var saved []map[string]any
	if b, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(b, &saved); err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	saved[0]["Next"], saved[0]["Doubt"] = first.Unix()+4, first.Unix()+13
	if b, err := json.Marshal(saved); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}

	p = begin(t, dir, &at)
	got := map[string]float64{}
	for range 6 {
		p.stats.Resource("a").Block("")
		at = at.Add(time.Second)
	}
	for range 3 {
		maps.Copy(got, p.seconds("cursor=x", "persecond_block"))
	}
	for second := first.Unix() + 4; second < first.Unix()+16; second++ {
		_, sent := got[fmt.Sprint("a ", second)]
		if reused := second >= first.Unix()+10 && second < first.Unix()+13; sent == reused {
			t.Errorf("second %d: sent %v, reused name %v", second-first.Unix(), sent, reused)
		}
	}
	if n := p.page.Counts()["cursor_lost_seconds_total"]; n != 3 {
		t.Errorf("%v lost seconds, want 3", n)
	}
}

// Names with characters that the log escapes are unchanged.
func TestEscapedNamesInTheLog(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := begin(t, dir, &at)
	names := []string{"a|b", "a_b", `a\x7cb`, "a\nb", `a\`}
	for range 5 {
		for i, name := range names {
			for range i + 1 {
				p.stats.Resource(name).Block("")
			}
		}
		at = at.Add(time.Second)
	}
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	p = p.again(t, dir, &at)
	sums := map[float64]int{}
	for _, v := range p.seconds("cursor=x", "persecond_block") {
		sums[v]++
	}
	for i := range names {
		if got := sums[float64(i+1)]; got != 5 {
			t.Errorf("%q: %d seconds, want 5", names[i], got)
		}
	}
}

// Responses from the log respect the limits, even if many resources were created in one second.
func TestResponsesFromTheLogAreBounded(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := begin(t, dir, &at)
	for second := range 10 {
		resources := 10 + 90*min(second, 2)
		if second == 9 {
			resources = 1900
		}
		for i := range resources {
			p.stats.Resource(fmt.Sprint(i)).Block("")
		}
		at = at.Add(time.Second)
	}
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	p = p.again(t, dir, &at)
	for i := range 10 {
		p.stats.Resource(fmt.Sprint(i)).Block("")
	}
	at = at.Add(100 * time.Second)
	got := map[string]bool{}
	responses := 0
	for ; responses < 100; responses++ {
		part := p.seconds("cursor=x&metric=persecond_pass", "persecond_pass")
		if len(part) > 2000 {
			t.Errorf("response with %d samples", len(part))
		}
		for k := range part {
			if got[k] {
				t.Errorf("duplicate %s", k)
			}
			got[k] = true
		}
		if len(part) == 0 {
			break
		}
	}
	if want := 10 + 100 + 7*190 + 1900 + 100*10; len(got) != want || responses > 4 {
		t.Errorf("%d samples in %d responses, want %d", len(got), responses, want)
	}
}

// Cursors of one scraper with different filters are one series in the self-metrics.
func TestScrapersInTheSelfMetrics(t *testing.T) {
	c, now := service(t, collector.Options{})
	read := newScraper(t, c, prom.SecondsOptions{})
	c.Resource("a").Block("")
	*now = now.Add(10 * time.Second)
	for range 2 {
		read.get("cursor=x")
		read.get("cursor=x&metric=persecond_pass")
		read.get("cursor=x&histogram=classic")
	}
	families, err := register(t, c, prom.Options{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "windowstat_cursor_delivered_seconds_total" {
			if len(f.Metric) != 1 || f.Metric[0].Counter.GetValue() != 30 {
				t.Errorf("%v", f)
			}
		}
	}
}
