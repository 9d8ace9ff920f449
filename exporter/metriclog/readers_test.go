package metriclog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// follow repeatedly searches from its position until done is set and a search reaches its end. It returns the rows by
// log. It ends each search after any row or, with wholeSeconds, after the total of a second.
func follow(t *testing.T, s Searcher, rng *rand.Rand, wholeSeconds bool, done *atomic.Bool) map[string][]Row {
	byLog := map[string][]Row{}
	q := Query{}
	for {
		last := done.Load()
		r, err := s.Search(q)
		if err != nil {
			t.Error(err)
			return byLog
		}
		n, most := 0, 1+rng.IntN(3000)
		for row := range r.All() {
			byLog[row.log()] = append(byLog[row.log()], row)
			if n++; n >= most && (!wholeSeconds || row.Resource == collector.InboundTotal) {
				break
			}
		}
		q.After = r.Position()
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if r.Malformed() != 0 {
			t.Errorf("%d malformed lines", r.Malformed())
		}
		if last && n < most { // the search has returned all rows
			return byLog
		}
	}
}

// Readers that continue at their positions while processes write get each row once and never a part of a second. One
// process is far slower than the others.
func TestReadersFollowWriters(t *testing.T) {
	seconds := 700
	if testing.Short() {
		seconds = 150
	}
	dir := t.TempDir()
	begin := start.Unix()
	var done atomic.Bool
	var writers, readers sync.WaitGroup
	for i, p := range []*process{
		newProcess(t, dir, "shop", 0, 60_000, time.UTC),
		newProcess(t, dir, "shop", 12, 300_000, time.UTC),
		newProcess(t, dir, "pay", 0, 1, time.UTC),
	} {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			for n := range []int{seconds, seconds, 30}[i] { // the last process has a segment per second
				second := begin + int64(n) - int64(1000*i)
				var many []string
				for j := range rng.IntN(120) {
					many = append(many, fmt.Sprint("resource ", j))
				}
				if err := p.second(second, many...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got := make([]map[string][]Row, 4)
	for i := range got {
		readers.Go(func() { got[i] = follow(t, Searcher{Dir: dir}, rand.New(rand.NewPCG(uint64(i), 3)), false, &done) })
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	all, _ := scan(t, dir)
	want := map[string][]Row{}
	for _, row := range all {
		want[row.log()] = append(want[row.log()], row)
	}
	for i, byLog := range got {
		if len(byLog) != len(want) {
			t.Errorf("reader %d: %d logs, want %d", i, len(byLog), len(want))
		}
		for log, rows := range want {
			compareRows(t, fmt.Sprintf("reader %d, %s", i, log), byLog[log], rows)
		}
	}
}

// A search continues while retention deletes the oldest segments. It returns no error, no duplicate and no partial
// second.
func TestRetentionUnderReaders(t *testing.T) {
	seconds := 1000
	if testing.Short() {
		seconds = 150
	}
	dir := t.TempDir()
	p := newProcess(t, dir, "shop", 0, 1500, time.UTC)
	p.MaxFiles = 3
	begin := start.Unix()
	var done atomic.Bool
	var readers sync.WaitGroup
	got := make([]map[string][]Row, 3)
	for i := range got {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 4))
			got[i] = follow(t, Searcher{Dir: dir}, rng, true, &done) // retention may delete the rest of a second
		})
	}
	for n := range int64(seconds) {
		if err := p.second(begin+n, "a", "b", "c"); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	readers.Wait()
	left, _ := scan(t, dir)
	for i, byLog := range got {
		rows := byLog[p.log]
		perSecond := map[int64]int{}
		for j, row := range rows {
			perSecond[row.Start.Unix()]++
			if j > 0 && row.Start.Before(rows[j-1].Start) {
				t.Fatalf("reader %d: %v after %v", i, row.Start, rows[j-1].Start)
			}
		}
		for second, n := range perSecond {
			if n != 4 {
				t.Errorf("reader %d: %d rows of second %d, want 4", i, n, second-begin)
			}
		}
		if len(rows) < len(left) {
			t.Fatalf("reader %d: %d rows, but the log has %d", i, len(rows), len(left))
		}
		compareRows(t, "remaining rows", rows[len(rows)-len(left):], left)
	}
}

// A position drops deleted logs. Otherwise it would grow with each process.
func TestPositionForgetsDeletedLogs(t *testing.T) {
	all := t.TempDir()
	var at Position
	for pid := 1000; pid < 1020; pid++ {
		dir := fmt.Sprint(all, "/", pid) // each search finds another log
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		p := newProcess(t, dir, "shop", pid, 1000, time.UTC)
		if err := p.second(start.Unix()+int64(pid), "a"); err != nil {
			t.Fatal(err)
		}
		r, err := Searcher{Dir: dir}.Search(Query{After: at})
		if err != nil {
			t.Fatal(err)
		}
		for range r.All() {
		}
		if at = r.Position(); len(at.logs) != 1 {
			t.Fatalf("position in %d logs, want 1", len(at.logs))
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
