package metriclog

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	escape  = regexp.MustCompile(`\\\\|\\x[01][0-9a-f]|\\x7c|\\x7f`)
	logFile = regexp.MustCompile(`^([^.]*)-metrics\.log(?:\.pid([0-9]+))?\.[0-9]{4}-[0-9]{2}-[0-9]{2}(?:\.([0-9]+))?$`)
)

// parseNaively is an independent implementation of Parse for lines with eleven fields.
func parseNaively(line string) (row Row, ok bool) {
	f := strings.Split(line, "|")
	if len(f) != 11 {
		return row, false
	}
	var n [11]int64
	for _, i := range []int{0, 3, 4, 5, 6, 7, 8, 9, 10} {
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil || !digits.MatchString(f[i]) {
			return row, false
		}
	}
	if n[7] > math.MaxInt64/int64(time.Millisecond) {
		return row, false
	}
	name := escape.ReplaceAllStringFunc(f[2], func(s string) string {
		if s == `\\` {
			return `\`
		}
		c, _ := strconv.ParseUint(s[2:], 16, 8)
		return string([]byte{byte(c)})
	})
	return Row{
		Start: time.UnixMilli(n[0]).UTC(), Resource: name, Pass: n[3], Block: n[4], Success: n[5], Exception: n[6],
		RT: time.Duration(n[7]) * time.Millisecond, OccupiedPass: n[8], Concurrency: n[9],
	}, true
}

// scan returns the rows of every line of every segment, in the order of a search.
func scan(t testing.TB, dir string) (rows []Row, malformed int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	type segmentRows struct {
		log   string
		first int64
		n     int
		rows  []Row
	}
	var all []segmentRows
	for _, e := range entries {
		m := logFile.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		p := segmentRows{log: m[1] + m[2], first: 1 << 62}
		p.n, _ = strconv.Atoi(m[3])
		for line := range strings.Lines(string(b)) {
			row, ok := parseNaively(strings.TrimSuffix(line, "\n"))
			if !ok || !strings.HasSuffix(line, "\n") {
				malformed++
				continue
			}
			row.App = m[1]
			row.PID, _ = strconv.Atoi(m[2])
			p.first = min(p.first, row.Start.Unix())
			p.rows = append(p.rows, row)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b segmentRows) int {
		return cmp.Or(strings.Compare(a.log, b.log), cmp.Compare(a.first, b.first), cmp.Compare(a.n, b.n))
	})
	for _, p := range all {
		rows = append(rows, p.rows...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.log(), b.log()))
	})
	return rows, malformed
}

// selectRows returns the rows from a range of seconds, both inclusive, of an application, and of the matching
// resources.
func selectRows(rows []Row, from, to time.Time, app string, match func(string) bool) (out []Row) {
	for _, r := range rows {
		if (from.IsZero() || r.Start.Unix() >= from.Unix()) && (to.IsZero() || r.Start.Unix() <= to.Unix()) &&
			(app == "" || r.App == fileName(app)) && (match == nil || match(r.Resource)) {
			out = append(out, r)
		}
	}
	return out
}

// search returns all rows that a search finds, and checks that it closes all files.
func search(t testing.TB, s Searcher, q Query) (rows []Row, malformed int64) {
	t.Helper()
	r, err := s.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	for row := range r.All() {
		rows = append(rows, row)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if n := openFiles(r); n != 0 {
		t.Errorf("%d segments are open after the last row", n)
	}
	return rows, r.Malformed()
}

// openFiles returns the number of logs with an open segment.
func openFiles(r *Rows) (n int) {
	for _, s := range r.streams {
		if s.reader != nil {
			n++
		}
	}
	return n
}

// compareRows reports the first difference.
func compareRows(t testing.TB, what string, got, want []Row) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: %d rows, want %d; row %d is missing: %+v", what, len(got), len(want), i, want[i])
		case i >= len(want):
			t.Fatalf("%s: %d rows, want %d; row %d is unexpected: %+v", what, len(got), len(want), i, got[i])
		case got[i] != want[i]:
			t.Fatalf("%s: row %d of %d is\n%+v, want\n%+v", what, i, len(want), got[i], want[i])
		}
	}
}

// Every search finds the same rows as reading every line of every file.
func TestSearchEqualsScan(t *testing.T) {
	seeds := uint64(15)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		begin, end := randomLogs(t, dir, rng)
		all, malformed := scan(t, dir)
		if malformed != 0 || len(all) == 0 {
			t.Fatalf("%d rows, %d malformed", len(all), malformed)
		}
		randomTime := func() time.Time {
			switch rng.IntN(6) {
			case 0:
				return time.Time{}
			case 1:
				return time.Unix(begin-5+rng.Int64N(end-begin+10), rng.Int64N(1e9))
			default:
				return all[rng.IntN(len(all))].Start.Add(time.Duration(rng.IntN(3)-1) * time.Second)
			}
		}
		for i := range 12 {
			match := []func(string) bool{
				nil, nil,
				func(s string) bool { return s == "a|b" },
				func(s string) bool { return strings.HasPrefix(s, "GET /a") },
				regexp.MustCompile(`^\W|\\`).MatchString,
				func(string) bool { return false },
			}[rng.IntN(6)]
			app := []string{"", "shop", "pay.api", "nobody"}[rng.IntN(4)]
			from, to := randomTime(), randomTime()
			want := selectRows(all, from, to, app, match)
			s, q := Searcher{Dir: dir, App: app}, Query{From: from, To: to, Match: match}
			got, malformed := search(t, s, q)
			compareRows(t, fmt.Sprintf("seed %d, search %d, %v to %v, app %q", seed, i, from.Unix(), to.Unix(), app),
				got, want)
			if malformed != 0 {
				t.Errorf("seed %d, search %d: %d malformed lines", seed, i, malformed)
			}
			compareRows(t, fmt.Sprintf("seed %d, search %d with breaks", seed, i), searchInParts(t, s, q, rng), want)
		}
	}
}

// searchInParts breaks the loop at random. It then continues the loop, or starts a new search at the position.
func searchInParts(t testing.TB, s Searcher, q Query, rng *rand.Rand) (rows []Row) {
	t.Helper()
	for {
		r, err := s.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		for {
			n, most := 0, 1+rng.IntN(400)
			for row := range r.All() {
				rows = append(rows, row)
				if n++; n == most {
					break
				}
			}
			if n < most {
				if err := r.Err(); err != nil {
					t.Error(err)
				}
				return rows
			}
			if rng.IntN(2) == 0 {
				break
			}
		}
		q.After = r.Position()
		if err := r.Close(); err != nil || openFiles(r) != 0 {
			t.Errorf("close: %v, %d segments are open", err, openFiles(r))
		}
	}
}
