package sentinellog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// Files that are damaged, unreadable or of other programs are named once, and nothing else is lost: a missing, a short
// and a corrupt index, a line that a crash cut off, invalid UTF-8, binary data, a directory with the name of a log,
// rows of another day, and impossible numbers.
func TestBadFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		begin := time.Now().Unix()
		date := time.Unix(begin, 0).UTC().Format(time.DateOnly)
		path := func(app string) string { return filepath.Join(dir, app+"-metrics.log."+date) }
		var logs []*javaLog
		log := func(app string) *javaLog {
			l := newJavaLog(t, dir, app, 0)
			logs = append(logs, l)
			return l
		}
		log("good")
		log("noindex").noIndex = true
		log("shortindex")
		log("badindex")
		log("cut").maxBytes = 3000
		log("binary")
		log("impossible")
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.Mkdir(path("directory"), 0o700))
		must(os.WriteFile(path("unreadable"), []byte("secret"), 0o000))
		must(os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("not a log"), 0o600))
		var messages bytes.Buffer
		f := start(t, sentinellog.Options{
			Dir: dir, StateDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&messages, nil)),
		})
		d := database{}
		for i := range int64(90) {
			now := begin + i
			for n, l := range logs {
				l.write(now, traffic(int64(n), now, 3, false))
			}
			switch i {
			case 20:
				must(os.Truncate(path("shortindex")+".idx", 37))
				must(os.WriteFile(path("badindex")+".idx", bytes.Repeat([]byte{0xff}, 160), 0o600))
			case 30: // the process is killed while it writes; the next one begins a new file
				appendFile(t, logs[4].path(), []byte(fmt.Sprintf("%d|2000-01-01 00:00:31|GET /r/0|1|2", (now+1)*1000)))
				logs[4].restart()
				appendFile(t, path("binary"), append(bytes.Repeat([]byte{0, 1, 0xfe, '|'}, 5000), '\n'))
			case 31:
				appendFile(
					t,
					path("binary"),
					[]byte(fmt.Sprintf("%d|2000-01-01 00:00:31|caf\xe9|7|0|7|0|3|0|0|0\n", now*1000)),
				)
				appendFile(
					t,
					path("impossible"),
					[]byte(
						fmt.Sprintf(
							"%d|x|a|-7|0|7|0|3|0|0|0\n%[1]d|x|b|1|0|1|0|18446744073709551611|0|0|0\n",
							now*1000,
						),
					),
				)
				appendFile(
					t,
					path("impossible"),
					[]byte(fmt.Sprintf("%d|x|other day|1|0|7|0|3|0|0|0\n", now*1000-5*86400_000)),
				)
			}
			time.Sleep(time.Second)
			if i%10 == 9 {
				d.store(t, f.scrape(t, "a", false))
			}
		}
		time.Sleep(10 * time.Second)
		d.store(t, f.scrape(t, "a", false))
		for _, l := range logs {
			if rows := d.compare(t, l, begin, begin+90); rows < 90 {
				t.Errorf("%s has only %d rows", l.app, rows)
			}
		}
		if got := d[`windowstat_persecond_pass{app="binary",resource="caf�"}`][begin+31]; got != 7 {
			t.Errorf("the resource with invalid UTF-8 has %v passes", got)
		}
		if got := d[`windowstat_persecond_pass{app="impossible",resource="b"}`][begin+31]; got != 1 {
			t.Errorf("the resource with an impossible response time has %v passes", got)
		}
		for file, want := range map[string]int{
			"unreadable-metrics": 1, "binary-metrics": 1, "impossible-metrics": 1,
			"good-metrics": 0, "noindex": 0, "shortindex": 0, "badindex": 0, "cut-": 0, "directory": 0, "notes": 0,
		} {
			if os.Getuid() == 0 && file == "unreadable-metrics" {
				continue // root reads all files; the line has no newline
			}
			if n := strings.Count(messages.String(), file); n != want {
				t.Errorf("%s is named %d times, want %d, in\n%s", file, n, want, messages.String())
			}
		}
		if n := f.metric("sentinel_malformed_lines_total"); n != 3 {
			t.Errorf("%v malformed lines", n)
		}
		f.stop()
	})
}

// A log may be in a read-only directory. The state directory belongs to one Follower.
func TestStateDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, state := t.TempDir(), t.TempDir()
		newJavaLog(t, dir, "shop", 0).write(time.Now().Unix(), traffic(1, 1, 3, false))
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		o := sentinellog.Options{Dir: dir, StateDir: state, Logger: slog.New(slog.DiscardHandler)}
		f := start(t, o)
		time.Sleep(10 * time.Second)
		if page := f.scrape(t, "a", false); !strings.Contains(page, `windowstat_persecond_pass{app="shop"`) {
			t.Errorf("the page is %q", page)
		}
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sentinellog.New(c, o); err == nil || !strings.Contains(err.Error(), "StateDir") {
			t.Errorf("a second Follower: %v", err)
		}
		f.stop()
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 { // the log and its index
			t.Errorf("the directory of the logs has %v, %v", entries, err)
		}
		// Unreadable state is renamed, and not trusted.
		if err := os.WriteFile(filepath.Join(state, "windowstat-sentinel.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, o).stop()
		entries, err = os.ReadDir(state)
		if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return e.Name() == "windowstat-sentinel.json.unreadable"
		}) {
			t.Errorf("the state directory has %v, %v", entries, err)
		}
	})
}

// With Sum, the processes of an application are one instance. Rows that arrive after their second was exported are lost
// and counted.
func TestSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		begin := time.Now().Unix()
		f := start(t, sentinellog.Options{Dir: dir, StateDir: t.TempDir(), Sum: true})
		a, b := newJavaLog(t, dir, "shop", 1), newJavaLog(t, dir, "shop", 2)
		for i := range int64(30) {
			at := begin + i
			a.write(at, map[string]counts{"x": {pass: 10, success: 3, rt: 10, concurrency: 5}, "y": {pass: 1}})
			if i != 20 {
				b.write(at, map[string]counts{"x": {pass: 5, success: 1, rt: 30, concurrency: 7, block: 2}})
			}
			if i == 29 {
				b.last = 0
				b.write(begin+20, map[string]counts{"x": {pass: 5}})
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		d := database{}
		d.store(t, f.scrape(t, "a", false))
		for i := range int64(30) {
			want := map[string]float64{
				`pass{app="shop",resource="x"}`:           15,
				`block{app="shop",resource="x"}`:          2,
				`complete{app="shop",resource="x"}`:       4,
				`rt_avg_seconds{app="shop",resource="x"}`: 0.015, `in_flight_max{app="shop",resource="x"}`: 7,
				`pass{app="shop",resource="y"}`: 1,
			}
			if i == 20 {
				want[`pass{app="shop",resource="x"}`] = 10
				want[`block{app="shop",resource="x"}`] = 0
				want[`complete{app="shop",resource="x"}`] = 3
				want[`rt_avg_seconds{app="shop",resource="x"}`] = 0.010
				want[`in_flight_max{app="shop",resource="x"}`] = 5
			}
			for name, v := range want {
				if got := d["windowstat_persecond_"+name][begin+i]; got != v {
					t.Errorf("%s is %v in second %d, want %v", name, got, i, v)
				}
			}
		}
		if lost, late := f.metric("sentinel_lost_rows_total"), f.metric("sentinel_late_rows_total"); lost != 1 ||
			late != 1 {
			t.Errorf("%v rows are lost, %v are late", lost, late)
		}
		f.stop()
	})
}
