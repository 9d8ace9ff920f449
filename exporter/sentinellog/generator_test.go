package sentinellog_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// counts are the numbers of one resource in one second: the truth.
type counts struct{ pass, block, success, exception, rt, occupied, concurrency int64 }

// javaLog writes a metric log as Sentinel for Java does: rows in ascending order of seconds, an index with a record for
// each second, files of a date with numbers, and a new file when one is full. It keeps the truth.
type javaLog struct {
	t        testing.TB
	dir      string
	app      string
	pid      int
	maxBytes int64
	zone     *time.Location
	noIndex  bool

	truth map[int64]map[string]counts // by second and resource
	last  int64
	date  string
	n     int
	size  int64
}

func newJavaLog(t testing.TB, dir, app string, pid int) *javaLog {
	return &javaLog{
		t: t, dir: dir, app: app, pid: pid, maxBytes: 50 << 20, zone: time.UTC, truth: map[int64]map[string]counts{},
	}
}

// path returns the path of the current file.
func (l *javaLog) path() string {
	name := l.app + "-metrics.log"
	if l.pid != 0 {
		name += fmt.Sprintf(".pid%d", l.pid)
	}
	name += "." + l.date
	if l.n > 0 {
		name += fmt.Sprintf(".%d", l.n)
	}
	return filepath.Join(l.dir, name)
}

// restart begins a new file, as a new process does.
func (l *javaLog) restart() { l.size = l.maxBytes }

// write writes the rows of a second, sorted by name, the total last.
func (l *javaLog) write(second int64, rows map[string]counts) {
	l.t.Helper()
	if second < l.last {
		return // as Sentinel
	}
	at := time.Unix(second, 0).In(l.zone)
	if date := at.Format(time.DateOnly); date != l.date {
		l.date, l.n, l.size = date, 0, 0
		for _, err := os.Stat(l.path()); err == nil; _, err = os.Stat(l.path()) {
			l.n++
		}
	} else if l.size >= l.maxBytes {
		l.n, l.size = l.n+1, 0
	}
	var text strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "__", "\xff"), strings.ReplaceAll(b, "__", "\xff"))
	}) {
		c := rows[name]
		fmt.Fprintf(
			&text,
			"%d|%s|%s|%d|%d|%d|%d|%d|%d|%d|0\n",
			second*1000,
			at.Format(time.DateTime),
			strings.ReplaceAll(
				name,
				"|",
				"_",
			),
			c.pass,
			c.block,
			c.success,
			c.exception,
			c.rt,
			c.occupied,
			c.concurrency,
		)
	}
	if l.truth[second] == nil {
		l.truth[second] = map[string]counts{}
		if !l.noIndex {
			record := binary.BigEndian.AppendUint64(nil, uint64(second))
			appendFile(l.t, l.path()+".idx", binary.BigEndian.AppendUint64(record, uint64(l.size)))
		}
	}
	appendFile(l.t, l.path(), []byte(text.String()))
	maps.Copy(l.truth[second], rows)
	l.last, l.size = second, l.size+int64(text.Len())
}

func appendFile(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// traffic returns the rows of a second of a process: some resources are busy, and some are idle most of the time.
// Concurrency is 0, as in Java's logs, unless levels is set.
func traffic(seed, second int64, resources int, levels bool) map[string]counts {
	rows := map[string]counts{}
	var all counts
	for i := range resources {
		x := uint64(seed*1_000_003+second)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9
		x ^= x >> 29
		if x *= 0x94d049bb133111eb; i > 0 && x%uint64(1+10*i) != 0 {
			continue
		}
		c := counts{
			pass:     int64(x>>8) & 63,
			block:    int64(x>>16) & 3,
			rt:       int64(x>>24) & 1023,
			occupied: int64(x>>40) & 1,
		}
		c.success = max(c.pass-int64(x>>32)&3, 0)
		c.exception = c.success / 5
		if c == (counts{rt: c.rt}) {
			continue
		}
		if levels && c.pass > 0 {
			c.concurrency = 1 + int64(x>>50)&7
		}
		rows[fmt.Sprintf("GET /r/%d", i)] = c
		all.pass, all.block, all.success = all.pass+c.pass, all.block+c.block, all.success+c.success
		all.exception, all.rt = all.exception+c.exception, max(all.rt, c.rt)
		all.concurrency = max(all.concurrency, c.concurrency)
	}
	if len(rows) > 0 {
		rows["__total_inbound_traffic__"] = all
	}
	return rows
}
