package metriclog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// print returns the line of a row.
func (r *Row) print() string {
	m := r.Record()
	m.RTSum = r.RT
	line := appendLine(nil, appendHead(nil, r.Start), r.Resource, &m)
	if r.Success != 1 { // otherwise the average equals RTSum
		fields := strings.Split(string(line), "|")
		fields[7] = fmt.Sprint(r.RT.Milliseconds())
		return strings.Join(fields, "|")
	}
	return string(line)
}

// A parsed line, printed and parsed again, is the same row. Parse agrees with parseNaively.
func FuzzParse(f *testing.F) {
	for _, name := range names {
		m := node.MetricNode{Counts: node.Counts{Pass: 1, Complete: 1<<63 - 1, RTSum: 5}}
		f.Add(string(appendLine(nil, appendHead(nil, start), name, &m)))
	}
	f.Add("1767323045000|2026-01-02 03:04:05|GET /a|3|1|2|1|7")
	f.Add("-1|d|\\x4a\\xzz\\|3|-1|2|1|7|1|1|1")
	f.Add("1|d|r|9223372036854775807|1|9223372036854775808|1|9223372036854|1|1|0")
	f.Fuzz(func(t *testing.T, line string) {
		if row, ok := parseNaively(line); ok && len(line) < 1000 {
			if got, err := Parse(line); err != nil && row.RT >= 0 && row.RT < 1<<40*time.Millisecond &&
				row.Start.Year() < 9999 {
				t.Fatalf("%q: %v", line, err)
			} else if err == nil && got != row {
				t.Fatalf("%q is\n%+v, want\n%+v", line, got, row)
			}
		}
		row, err := Parse(line)
		if err != nil || row.Start.Year() < 0 || row.Start.Year() > 9999 {
			return
		}
		again, err := Parse(row.print())
		if err != nil || again != row {
			t.Fatalf("%q is\n%+v, printed as %q and parsed again\n%+v, %v", line, row, row.print(), again, err)
		}
	})
}

// Each name fills exactly one field of one line. Reading the line returns the name.
func FuzzName(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m := node.MetricNode{Counts: node.Counts{Pass: 3}}
		line := string(appendLine(nil, appendHead(nil, start), name, &m))
		if strings.Count(line, "\n") != 1 || strings.Count(line, "|") != 10 {
			t.Fatalf("%q", line)
		}
		row, err := Parse(line)
		if err != nil || row.Resource != name || row.Pass != 3 {
			t.Fatalf("%q became %q, %v", name, row.Resource, err)
		}
	})
}

// No contents of an index hide a row of an intact segment, for any range of seconds.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	p := newProcess(f, dir, "shop", 0, 1<<30, time.UTC)
	for n := range int64(300) {
		if err := p.second(start.Unix()+n*n%7+n*10, "a", strings.Repeat("b", int(n%5)*400), "c"); err != nil {
			f.Fatal(err)
		}
	}
	path := p.path(p.current)
	idx, err := os.ReadFile(path + idxSuffix)
	if err != nil {
		f.Fatal(err)
	}
	all, _ := scan(f, dir)
	for _, b := range indexVariants(idx, idx[:320]) {
		f.Add(b, int64(5), int64(300))
	}
	f.Fuzz(func(t *testing.T, idx []byte, from, seconds int64) {
		if err := os.WriteFile(path+idxSuffix, idx, 0o644); err != nil {
			t.Fatal(err)
		}
		q := Query{From: time.Unix(start.Unix()+from%4000, 0)}
		q.To = q.From.Add(time.Duration(seconds%4000) * time.Second)
		got, malformed := search(t, Searcher{Dir: dir}, q)
		compareRows(t, "rows", got, selectRows(all, q.From, q.To, "", nil))
		if malformed != 0 {
			t.Errorf("%d malformed lines", malformed)
		}
	})
}

// For any contents of a segment and its index, each found row is a complete line of the segment. The next process can
// append rows, and a search finds them.
func FuzzSearch(f *testing.F) {
	d := newDamagedLog(f)
	for _, idx := range indexVariants(d.idx[0], d.idx[1]) {
		f.Add(d.data[0], idx)
	}
	f.Add([]byte("1767323000000|x|a|1|1|1|1|1\n1767323001000|x|a|1|1|1|1|1\n17673"), []byte{})
	dir := f.TempDir()
	path := filepath.Join(dir, "shop-metrics.log.2026-01-02")
	f.Fuzz(func(t *testing.T, data, idx []byte) {
		old, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range old {
			_ = os.Remove(s)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+idxSuffix, idx, 0o644); err != nil {
			t.Fatal(err)
		}
		lines := map[Row]int{}
		for line := range bytes.Lines(data) {
			if row, err := Parse(string(line)); err == nil && bytes.HasSuffix(line, []byte("\n")) {
				row.App = "shop"
				lines[row]++
			}
		}
		got, malformed := search(t, Searcher{Dir: dir}, Query{})
		for _, row := range got {
			if lines[row]--; lines[row] < 0 {
				t.Fatalf("no line for row %+v", row)
			}
		}
		if all := bytes.Count(data, []byte("\n")) + 1; len(got)+int(malformed) > all {
			t.Fatalf("%d rows and %d malformed lines of %d", len(got), malformed, all)
		}
		search(t, Searcher{Dir: dir}, Query{From: start, To: start.Add(5 * time.Second)})

		p := newProcess(t, dir, "shop", 0, 1<<30, time.UTC)
		last := time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC).Unix()
		if err := p.second(last, "z"); errors.Is(err, errOutOfOrder) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
		after, _ := search(t, Searcher{Dir: dir}, Query{})
		n := 0
		for _, row := range after {
			if row.Resource == "z" || row.Resource == collector.InboundTotal && row.Start.Unix() == last {
				n++
			}
		}
		if n < 2 {
			t.Fatalf("%d rows of the next process among %d rows; %d rows before it", n, len(after), len(got))
		}
	})
}
