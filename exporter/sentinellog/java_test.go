package sentinellog_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/sentinellog"
)

var update = flag.Bool("update", false, "write the table in docs/sentinel.md instead of comparing it")

// javaExporter is a model of sentinel-prometheus-metric-exporter, written from its description: at each scrape it
// searches the metric log from its position to the current second, emits at most 1,024 rows, and moves the position
// past the current second. The position belongs to the process, and moves when a scrape fails, too. The first scrape
// only sets it.
type javaExporter struct {
	next  int64 // 0 before the first scrape
	delay int64 // csp.sentinel.prometheus.fetch.delay, in seconds
}

const fetchSize = 1024

// scrape returns the number of rows that a scrape at the second now emits. rows returns the number of rows of a second
// that the log has now.
func (x *javaExporter) scrape(now int64, rows func(second int64) int) (n int) {
	end := now - x.delay
	if x.next != 0 {
		for second := x.next; second <= end; second++ {
			n += rows(second)
		}
	}
	x.next = end + 1
	return min(n, fetchSize)
}

// lossCase is a row of the table: ten minutes of a log, scraped every 15 seconds.
type lossCase struct {
	name             string
	resources        int
	servers          int
	failing          bool // each tenth scrape fails
	delay            int64
	rows, java, here int // rows that each server should have, and rows that are lost on average
}

const lossSeconds, lossInterval = 600, 15

// run computes the lost rows of both exporters. Sentinel has written the rows of a second a second after its end.
func (c *lossCase) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := start(t, sentinellog.Options{Dir: dir, StateDir: t.TempDir()})
		log := newJavaLog(t, dir, "shop", 0)
		rival := javaExporter{delay: c.delay}
		begin := time.Now().Unix()
		rival.next = begin // as if it had been scraped before
		databases := make([]database, c.servers)
		for i := range databases {
			databases[i] = database{}
		}
		emitted, scrapes := 0, 0
		for i := range int64(lossSeconds + 60) {
			now := begin + i
			if written := now - 1; i > 0 && i <= lossSeconds {
				rows := map[string]counts{}
				for r := range c.resources {
					rows[fmt.Sprintf("r%d", r)] = counts{pass: 1 + i%7, success: 1}
				}
				log.write(written, rows)
				c.rows += len(rows)
			}
			for s := range c.servers {
				if i%lossInterval != int64(7*s)%lossInterval {
					continue
				}
				scrapes++
				fails := c.failing && scrapes%10 == 0
				n := rival.scrape(now, func(second int64) int {
					if second >= begin && second < begin+min(i, lossSeconds) { // the row was written
						return len(log.truth[second])
					}
					return 0
				})
				if !fails {
					emitted += n
				}
				databases[s].store(t, f.scrape(t, fmt.Sprint("server", s), fails))
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		for s, d := range databases {
			d.store(t, f.scrape(t, fmt.Sprint("server", s), false))
			rows := 0
			for name, values := range d {
				if strings.HasPrefix(name, "windowstat_persecond_complete{") {
					for _, v := range values {
						rows += int(v)
					}
				}
			}
			c.here += c.rows - rows
		}
		c.java = c.rows - emitted/c.servers
		f.stop()
	})
}

// lostByJava returns the part of the rows that the model loses, in percent.
func (c *lossCase) lostByJava() float64 { return 100 * float64(c.java) / float64(c.rows) }

// The page loses no row where a model of Sentinel's exporter for Java does. The table is in docs/sentinel.md.
func TestRowsLostByJavasExporter(t *testing.T) {
	cases := []*lossCase{
		{name: "10 resources", resources: 10, servers: 1},
		{name: "10 resources, a fetch delay of 2 s", resources: 10, servers: 1, delay: 2},
		{name: "10 resources, a fetch delay of 2 s, two servers", resources: 10, servers: 2, delay: 2},
		{
			name:      "10 resources, a fetch delay of 2 s, each tenth scrape fails",
			resources: 10,
			servers:   1,
			delay:     2,
			failing:   true,
		},
		{name: "100 resources, a fetch delay of 2 s", resources: 100, servers: 1, delay: 2},
		{name: "200 resources, a fetch delay of 2 s", resources: 200, servers: 1, delay: 2},
	}
	table := "| log, for ten minutes | rows " +
		"| lost by the model of Java's exporter | lost by `windowstat sentinel` |\n" +
		"|---|---|---|---|\n"
	for _, c := range cases {
		c.run(t)
		if c.here != 0 {
			t.Errorf("%s: the page lost %d rows", c.name, c.here)
		}
		table += fmt.Sprintf("| %s | %d | %d (%.0f %%) | %d |\n", c.name, c.rows, c.java, c.lostByJava(), c.here)
	}
	t.Log("\n" + table)
	readme, err := os.ReadFile("../../README.md")
	hundred := cases[4]
	if line := fmt.Sprintf("loses %.0f %% of the rows", hundred.lostByJava()); err != nil || !strings.Contains(
		strings.ReplaceAll(string(readme), "\n", " "), line) {
		t.Errorf("the README does not have %q, %v", line, err)
	}
	const path = "../../docs/sentinel.md"
	const begin, end = "<!-- lost: go test ./exporter/sentinellog -update -->\n", "<!-- /lost -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	got, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok1 || !ok2:
		t.Fatalf("%s has no %q and %q", path, begin, end)
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case got != table:
		t.Errorf("%s does not match; run go test ./exporter/sentinellog -update", path)
	}
}
