package metriclog

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// process writes a log like a Writer, without a Collector.
type process struct {
	*files
	loc *time.Location
}

// newProcess returns a process of an application. If pid is 0, the file names have no process ID.
func newProcess(t testing.TB, dir, app string, pid int, maxSize int64, loc *time.Location) *process {
	t.Helper()
	p := &process{&files{Options: Options{Dir: dir, MaxFileSize: maxSize}, log: processLog(app, pid)}, loc}
	if err := p.reopen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	return p
}

// second writes a second with rows of the given resources. The counts of all rows differ.
func (p *process) second(second int64, names ...string) error {
	start := time.Unix(second, 0).In(p.loc)
	head := appendHead(nil, start)
	var rows []byte
	for i, name := range append(names, collector.InboundTotal) {
		n := second%100_000*100 + int64(i)
		m := node.MetricNode{InFlightMax: 7, Counts: node.Counts{
			Pass: n, Block: n + 1, Complete: 2, Exception: n + 3, OccupiedPass: n + 4,
			RTSum: 2 * time.Duration(n) * time.Millisecond,
		}}
		rows = appendLine(rows, head, name, &m)
	}
	err := p.append(start, rows)
	return errors.Join(err, p.flush())
}

// log returns the prefix of the file names of the row's log.
func (r *Row) log() string { return processLog(r.App, r.PID) }

// processLog returns the prefix of a log's file names. If pid is 0, the names have no process ID.
func processLog(app string, pid int) string {
	if pid == 0 {
		return logName(app)
	}
	return logName(app) + ".pid" + strconv.Itoa(pid)
}

var names = []string{
	"GET /a",
	"GET /ab",
	"GET /a/{id}",
	"a|b",
	`a\x7cb`,
	"new\nline",
	`back\slash\\x`,
	"π",
	"\x00",
	" ",
	"0|0|0|0",
}

// at returns the Unix time of a wall-clock time in a time zone.
func at(t testing.TB, zone, wall string) (int64, *time.Location) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	tm, err := time.ParseInLocation(time.DateTime, wall, loc)
	if err != nil {
		t.Fatal(err)
	}
	return tm.Unix(), loc
}

// randomLogs writes logs of several applications and processes, across days, months and clock changes. The processes
// restart, some of them in another time zone.
func randomLogs(t testing.TB, dir string, rng *rand.Rand) (begin, end int64) {
	t.Helper()
	changes := [][2]string{
		{"Europe/Berlin", "2026-03-29 00:59:00"},
		{"Europe/Berlin", "2026-10-25 01:58:30"},
		{"America/Havana", "2026-03-07 23:59:00"},
		{"Australia/Lord_Howe", "2026-04-05 00:59:30"},
		{"Pacific/Apia", "2011-12-29 23:59:30"},
		{"UTC", "2026-12-31 23:59:20"},
		{"UTC", "2028-02-28 23:59:20"},
	}
	zones := []*time.Location{time.UTC}
	change := changes[rng.IntN(len(changes))]
	begin, loc := at(t, change[0], change[1])
	zones = append(zones, loc, time.FixedZone("", -11*3600), time.FixedZone("", 13*3600))
	for _, app := range []string{"shop", "pay.api", "shop-x"}[:1+rng.IntN(3)] {
		pids := []int{0, 7, 12, 4711}[:1+rng.IntN(4)]
		for _, pid := range pids {
			second := begin + rng.Int64N(40)
			for range 1 + rng.IntN(4) { // restarts
				p := newProcess(t, dir, app, pid, 500+rng.Int64N(8000), zones[rng.IntN(len(zones))])
				for range 5 + rng.IntN(60) {
					var chosen []string
					for _, name := range names {
						if rng.IntN(3) == 0 {
							chosen = append(chosen, name)
						}
					}
					if err := p.second(second, chosen...); err != nil {
						t.Fatal(err)
					}
					second++
					switch rng.IntN(60) {
					case 0:
						second += rng.Int64N(100)
					case 1:
						second += rng.Int64N(100_000)
					}
				}
				if err := p.close(); err != nil {
					t.Fatal(err)
				}
				end = max(end, second)
			}
		}
	}
	return begin, end
}
