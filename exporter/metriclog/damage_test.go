package metriclog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A search of a segment that is truncated at any byte, with any variant of the index, finds exactly the complete
// seconds.
func TestSearchTruncatedSegments(t *testing.T) {
	d := newDamagedLog(t)
	want, length := []Row(nil), -1 // rows and length of the complete seconds
	for i := range d.paths {
		for what, idx := range indexVariants(d.idx[i], d.idx[(i+1)%3]) {
			step := 53
			if (what == "intact" || what == "missing") && !testing.Short() {
				step = 5
			}
			for cut := len(d.data[i]); cut >= 0; cut-- {
				if cut%step != 0 && !nearNewline(d.data[i], cut) {
					continue
				}
				complete, lines := completeSeconds(d.data[i][:cut])
				if cut > 0 && d.data[i][cut-1] == '\n' && len(complete) == 0 && what != "empty" {
					continue // a single second of complete lines, as Sentinel may write it
				}
				if len(complete) != length {
					d.write(t, i, complete, nil)
					want, _ = scan(t, d.dir)
					length = len(complete)
				}
				d.write(t, i, d.data[i][:cut], idx)
				got, malformed := search(t, Searcher{Dir: d.dir}, Query{})
				compareRows(t, fmt.Sprintf("file %d cut at %d, index: %s", i, cut, what), got, want)
				if i == len(d.paths)-1 {
					lines = 0 // a Writer may be writing these lines
				}
				if malformed != lines {
					t.Fatalf("file %d cut at %d, index: %s: %d malformed lines, want %d", i, cut, what, malformed,
						lines)
				}
			}
		}
		d.write(t, i, d.data[i], d.idx[i])
		length = -1
	}
}

// An incomplete second at the end of a segment stays hidden if more is damaged: the total of the second before, the
// bytes after that total, or the incomplete second.
func TestSearchTruncatedAndDamagedSegments(t *testing.T) {
	d := newDamagedLog(t)
	for i := range d.paths {
		lines := bytes.SplitAfter(d.data[i], []byte("\n"))
		zeros := strings.Repeat("\x00", 9000) + "\n"
		isTotal := func(line []byte) bool { return bytes.Contains(line, []byte("|"+collector.InboundTotal+"|")) }
		for cut := 2; cut < len(lines)-1; cut++ {
			if isTotal(lines[cut-1]) {
				continue // the last second before the cut is complete
			}
			last := cut - 1 // index of the previous total
			for last >= 0 && !isTotal(lines[last]) {
				last--
			}
			if last < 0 {
				continue // a single second of complete lines, as Sentinel may write it
			}
			// insert returns the lines before the cut with garbage before line i.
			insert := func(i int, garbage string) [][]byte {
				return slices.Concat(lines[:i], [][]byte{[]byte(garbage)}, lines[i:cut])
			}
			for what, damage := range map[string][][]byte{
				"nothing":                      slices.Concat(lines[:cut]),
				"a line between":               insert(last+1, "x|y\n"),
				"empty lines":                  insert(last+1, "\n\n\n"),
				"zeros":                        insert(last+1, zeros),
				"the total":                    slices.Concat(lines[:last], [][]byte{[]byte("x\n")}, lines[last+1:cut]),
				"garbage before the last line": insert(cut-1, "x\n"),
			} {
				if what == "the total" && !slices.ContainsFunc(lines[:last], isTotal) {
					continue // no other total marks the log as ours
				}
				d.write(t, i, slices.Concat(damage...), nil)
				got, _ := search(t, Searcher{Dir: d.dir}, Query{})
				torn, _, _ := bytes.Cut(lines[cut-1], []byte("|"))
				if slices.ContainsFunc(got,
					func(r Row) bool { return fmt.Sprint(r.Start.UnixMilli()) == string(torn) }) {
					t.Errorf("file %d cut before line %d, damaged is %s: the incomplete second was found", i, cut, what)
				}
			}
		}
		d.write(t, i, d.data[i], d.idx[i])
	}
}

// Garbage between lines is skipped and counted. All valid lines are found, with any variant of the index.
func TestSearchSegmentsWithGarbage(t *testing.T) {
	d := newDamagedLog(t)
	rng := rand.New(rand.NewPCG(1, 5))
	binaryGarbage := make([]byte, 300_000)
	for i := range binaryGarbage {
		binaryGarbage[i] = byte(rng.Uint32())
	}
	garbage := map[string]string{
		"bytes":                 string(binaryGarbage),
		"zeros":                 strings.Repeat("\x00", 100_000),
		"a long line":           strings.Repeat("1", 1<<20),
		"a long line of fields": strings.Repeat("1767323045000|", 1<<20/14),
		"lines from the future": "4092778245000|2099-09-10 03:04:05|a|1|1|1|1|1|1|1|0\n" +
			"4092778246000|x|a|1|1|1|1|1|1|1|0",
		"a line from long ago":      "1000|1970-01-01 00:00:01|a|1|1|1|1|1|1|1|0",
		"empty lines":               "\n\n",
		"lines with too few fields": "1767323045000|2026-01-02 03:04:05|a|1\n1767323045000|\n|||||||||||",
	}
	for what, s := range garbage {
		s := []byte(s + "\n")
		bad := int64(bytes.Count(s, []byte("\n")))
		for i := range d.paths {
			all := indexVariants(d.idx[i], d.idx[(i+1)%3])
			for which, idx := range all {
				want, _ := scan(t, d.dir)
				at := bytes.IndexByte(d.data[i], '\n') + 1
				if !bytes.Contains(s, []byte("1767323045000")) && rng.IntN(2) == 0 {
					at = 0 // only if the garbage does not look like another second
				}
				for range rng.IntN(9) {
					if n := bytes.IndexByte(d.data[i][at:], '\n') + 1; at+n < len(d.data[i]) {
						at += n
					}
				}
				d.write(t, i, slices.Concat(d.data[i][:at], s, d.data[i][at:]), idx)
				title := fmt.Sprintf("file %d, %s at %d, index: %s", i, what, at, which)
				got, malformed := search(t, Searcher{Dir: d.dir}, Query{})
				compareRows(t, title, got, want)
				if malformed != bad {
					t.Errorf("%s: %d malformed lines, want %d", title, malformed, bad)
				}
				from := start.Add(time.Duration(rng.IntN(12)) * time.Second)
				to := from.Add(time.Duration(rng.IntN(5)) * time.Second)
				got, _ = search(t, Searcher{Dir: d.dir}, Query{From: from, To: to})
				compareRows(t, title+", a part", got, selectRows(want, from, to, "", nil))
				d.write(t, i, d.data[i], d.idx[i])
			}
		}
	}
}

// A search in a large segment finds the first row with any variant of the index.
func TestSearchLargeSegmentWithInvalidIndex(t *testing.T) {
	dir := t.TempDir()
	p := newProcess(t, dir, "shop", 0, 1<<30, time.UTC)
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint("resource ", i))
	}
	const seconds = 600
	for n := range int64(seconds) {
		if err := p.second(start.Unix()+2*n, many[:1+n%100]...); err != nil {
			t.Fatal(err)
		}
	}
	path := p.path(p.current)
	idx, err := os.ReadFile(path + idxSuffix)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := scan(t, dir)
	for what, idx := range indexVariants(idx, idx[:160]) {
		_ = os.Remove(path + idxSuffix)
		if idx != nil {
			if err := os.WriteFile(path+idxSuffix, idx, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for from := int64(-3); from < 2*seconds+3; from += 97 {
			from := time.Unix(start.Unix()+from, 0)
			got, _ := search(t, Searcher{Dir: dir}, Query{From: from, To: from.Add(11 * time.Second)})
			compareRows(t, fmt.Sprintf("from %d, index: %s", from.Unix()-start.Unix(), what), got,
				selectRows(all, from, from.Add(11*time.Second), "", nil))
		}
	}
}

// After a power cut that truncates both files anywhere after the last sync, the next process keeps all synced seconds,
// removes incomplete ones, and continues the log.
func TestPowerCutKeepsSyncedSeconds(t *testing.T) {
	d := newDamagedLog(t)
	data, idx := d.data[2], d.idx[2]
	const synced = 2 // number of synced seconds
	syncedEnd := int(binary.BigEndian.Uint64(idx[synced*16+8:]))
	step := 7 // in the segment; the index is cut at varying bytes
	if testing.Short() {
		step = 47
	}
	before, _ := scan(t, d.dir)
	for cut := syncedEnd; cut <= len(data); cut += step {
		for idxCut := synced * 16; idxCut <= len(idx); idxCut += 1 + (cut+idxCut)%13 {
			for _, tail := range []int{0, 700} { // zeros
				dir := t.TempDir()
				path := filepath.Join(dir, filepath.Base(d.paths[2]))
				zeros := make([]byte, tail)
				if err := os.WriteFile(path, slices.Concat(data[:cut], zeros), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path+idxSuffix, slices.Concat(idx[:idxCut], zeros), 0o644); err != nil {
					t.Fatal(err)
				}
				title := fmt.Sprintf("data cut at %d of %d, index at %d, %d zeros", cut, len(data), idxCut, tail)
				p := newProcess(t, dir, "shop", 0, 1500, time.UTC)
				last := start.Unix() + 100
				if err := p.second(last, "a"); err != nil {
					t.Fatal(title, err)
				}
				if err := p.close(); err != nil {
					t.Fatal(title, err)
				}
				got, malformed := search(t, Searcher{Dir: dir}, Query{To: time.Unix(last-1, 0)})
				complete, _ := completeSeconds(data[:cut])
				first := len(before) - bytes.Count(data, []byte("\n"))
				compareRows(t, title, got, before[first:first+bytes.Count(complete, []byte("\n"))])
				if malformed != 0 {
					t.Errorf("%s: %d malformed lines", title, malformed)
				}
				if got, _ := search(t, Searcher{Dir: dir}, Query{From: time.Unix(last, 0)}); len(got) != 2 {
					t.Errorf("%s: %d rows of the next process", title, len(got))
				}
			}
		}
	}
}

// A line of a second some hours later does not end a search early.
func TestSearchContinuesAfterLineFromFuture(t *testing.T) {
	d := newDamagedLog(t)
	want, _ := scan(t, d.dir)
	later := fmt.Sprintf("%d|2026-01-02 13:04:05|a|1|1|1|1|1|1|1|0\n", start.Add(10*time.Hour).UnixMilli())
	at := bytes.Index(d.data[1], []byte(collector.InboundTotal))
	at += bytes.IndexByte(d.data[1][at:], '\n') + 1
	d.write(t, 1, slices.Concat(d.data[1][:at], []byte(later), d.data[1][at:]), d.idx[1])
	to := start.Add(10 * time.Second)
	got, _ := search(t, Searcher{Dir: d.dir}, Query{To: to})
	compareRows(t, "up to the third file", got, selectRows(want, time.Time{}, to, "", nil))
}

// A search that begins in a segment reads this segment even if its last line is damaged.
func TestSearchStartsInSegmentWithDamagedEnd(t *testing.T) {
	d := newDamagedLog(t)
	all, _ := scan(t, d.dir)
	d.write(t, 0, slices.Concat(d.data[0], []byte("garbage\n")), d.idx[0])
	from := start.Add(2 * time.Second)
	got, malformed := search(t, Searcher{Dir: d.dir}, Query{From: from})
	compareRows(t, "from the third second", got, selectRows(all, from, time.Time{}, "", nil))
	if malformed != 1 {
		t.Errorf("%d malformed lines, want 1", malformed)
	}
}

// The last line of a segment may have an earlier second than its first line, by damage or because a clock was set back.
// A search from a second before the segment reads it.
func TestSearchSegmentThatEndsBeforeItBegins(t *testing.T) {
	d := newDamagedLog(t)
	data := slices.Clone(d.data[0])
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	copy(data[last:], fmt.Sprint(start.Add(-100*time.Second).UnixMilli()))
	d.write(t, 0, data, d.idx[0])
	all, _ := scan(t, d.dir)
	got, malformed := search(t, Searcher{Dir: d.dir}, Query{From: start})
	compareRows(t, "from the first second", got, selectRows(all, start, time.Time{}, "", nil))
	if malformed != 0 {
		t.Errorf("%d malformed lines", malformed)
	}
}
