package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
)

// common returns a line in the format common, some seconds after the start of a day.
func common(second int, what string, status int) string {
	at := time.Unix(base/nanos/86400*86400+int64(second), 0).UTC()
	return fmt.Sprintf("::1 - - [%s] \"%s HTTP/1.1\" %d 1\n", at.Format("02/Jan/2006:15:04:05 -0700"), what, status)
}

// sums holds the counts of all seconds, by resource, and the passes in each second.
type sums struct {
	pass, block, complete, exception map[string]int64
	seconds                          map[int]int64
}

func (s *sums) add(x *Second) error {
	if s.seconds == nil {
		*s = sums{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[int]int64{}}
	}
	for _, row := range x.Rows {
		s.pass[row.Resource] += row.Pass
		s.block[row.Resource] += row.Block
		s.complete[row.Resource] += row.Complete
		s.exception[row.Resource] += row.Exception
	}
	s.seconds[int(x.Start.Unix()%86400)] += x.Total.Pass
	return nil
}

// replay replays text from a file.
func replay(t *testing.T, text string, change ...func(*Options)) (s sums, r *Report) {
	t.Helper()
	o := options(t, write(t, filepath.Join(t.TempDir(), "access.log"), []byte(text)))
	for _, f := range change {
		f(&o)
	}
	r, err := Run(t.Context(), o, s.add)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func equal[K comparable](t *testing.T, what string, got, want map[K]int64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestLinesWithoutDurations(t *testing.T) {
	s, r := replay(t, common(5, "GET /a", 200)+common(5, "GET /a?x=1", 404)+common(7, "GET /a", 503)+
		common(6, "GET /b", 429)+common(9, "GET /b", 200))
	equal(t, "pass", s.pass, map[string]int64{"GET /a": 3, "GET /b": 1})
	equal(t, "block", s.block, map[string]int64{"GET /a": 0, "GET /b": 1})
	equal(t, "complete", s.complete, map[string]int64{"GET /a": 3, "GET /b": 1})
	equal(t, "exception", s.exception, map[string]int64{"GET /a": 1, "GET /b": 0})
	equal(t, "seconds", s.seconds, map[int]int64{5: 2, 6: 0, 7: 1, 9: 1})
	if r.Timed || r.Lines != 5 || r.Statuses[200] != 2 || r.Statuses[429] != 1 {
		t.Errorf("report: %+v", r)
	}
}

// A busy second whose equal calls are merged has the same counts.
func TestCrowd(t *testing.T) {
	var b strings.Builder
	pass, block, exception := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := range 10_000 {
		what, status := []string{"GET /a", "GET /b", "POST /a"}[i%3], []int{200, 500, 429, 200}[i%4]
		b.WriteString(common(5+i/5000, what, status))
		switch status {
		case 429:
			block[what]++
			continue
		case 500:
			exception[what]++
		}
		pass[what]++
	}
	s, _ := replay(t, b.String())
	equal(t, "pass", s.pass, pass)
	equal(t, "complete", s.complete, pass)
	equal(t, "block", s.block, block)
	equal(t, "exception", s.exception, exception)
	equal(t, "seconds", s.seconds, map[int]int64{5: 3750, 6: 3750})
}

// Times of whole seconds with durations: every call is counted. A call without duration counts in the second of its
// line, and no call ends in a different second than its line states.
func TestWholeSeconds(t *testing.T) {
	var b strings.Builder
	want := map[int]int64{}
	for i := range 500 {
		duration := "0.000"
		if second := 100 + i/10; i%2 == 0 {
			want[second]++
		} else {
			duration = "5.000"
		}
		line := common(100+i/10, []string{"GET /short", "GET /long"}[i%2], 200)
		b.WriteString(strings.TrimSuffix(line, "\n") + ` "-" "-" ` + duration + "\n")
	}
	short, ended := map[int]int64{}, map[int]int64{}
	var total sums
	o := options(t, write(t, filepath.Join(t.TempDir(), "access.log"), []byte(b.String())))
	_, err := Run(t.Context(), o, func(s *Second) error {
		second := int(s.Start.Unix() % 86400)
		for _, row := range s.Rows {
			if row.Resource == "GET /short" && row.Pass != row.Complete {
				t.Errorf("second %d: %d passed, and %d completed", second, row.Pass, row.Complete)
			}
			if row.Resource == "GET /short" {
				short[second] += row.Pass
			} else if row.Complete > 0 {
				ended[second] += row.Complete
			}
		}
		return total.add(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "calls of no time", short, want)
	equal(t, "ends of the others", ended, want)
	equal(t, "pass", total.pass, map[string]int64{"GET /short": 250, "GET /long": 250})
}

// A stamp that happens to be a whole second is not spread if stamps can have fractions.
func TestTimeWithAFractionOfZero(t *testing.T) {
	f, err := accesslog.Nginx(`$msec $status $request_time`)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := replay(t, "86405.000 200 0.400\n86406.000 200 1.000\n", func(o *Options) { o.Format = f })
	equal(t, "seconds", s.seconds, map[int]int64{4: 1, 5: 1, 6: 0})
}

func TestSeveralLogs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, lines ...string) string {
		data := []byte(strings.Join(lines, ""))
		switch filepath.Ext(name) {
		case ".gz":
			data = append(pack(t, data[:len(data)/2]).Bytes(), pack(t, data[len(data)/2:]).Bytes()...)
		case ".zst":
			z, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			skipped := []byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y'}
			data = z.EncodeAll(data, skipped)
		}
		return write(t, filepath.Join(dir, strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")), data)
	}
	// The first two logs have gaps of more than the tolerance. The third one fills them.
	o := options(t,
		file("today.zst", common(50_000, "GET /d", 200), common(60_000, "GET /d", 200)),
		file("a", common(1000, "GET /a", 200), common(9000, "GET /a", 200), common(9001, "GET /a", 200)),
		file("b.gz", common(2000, "GET /b", 200), common(8000, "GET /b", 200), common(9500, "GET /b", 200)),
		"-", file("empty"), file("blank", "\n\n"))
	o.Stdin = strings.NewReader(common(3000, "GET /c", 200) + "\r\n" + common(3000, "GET /c", 200))
	var s sums
	r, err := Run(t.Context(), o, s.add)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "pass", s.pass, map[string]int64{"GET /a": 3, "GET /b": 3, "GET /c": 2, "GET /d": 2})
	if r.Lines != 11 || r.Late != 0 || r.Malformed != 0 || r.Others[accesslog.Empty] != 1 {
		t.Errorf("report: %+v", r)
	}
}

// A single wrong time must not affect its neighbors.
func TestWildTimes(t *testing.T) {
	day := 86400
	years := common(900*day, "GET /wild", 200)
	for _, c := range []struct {
		name                   string
		lines                  []string
		late, future, outliers int64
		pass                   int64
	}{
		{name: "none", lines: []string{common(9, "GET /", 200), common(10, "GET /", 200)}, pass: 2},
		{
			name:     "ahead",
			lines:    []string{common(9, "GET /", 200), years, common(10, "GET /", 200), common(11, "GET /", 200)},
			outliers: 1, pass: 3,
		},
		{name: "ahead, twice", lines: []string{
			common(9, "GET /", 200), years, years, common(10, "GET /", 200),
			common(11, "GET /", 200), common(12, "GET /", 200),
		}, outliers: 2, pass: 4},
		{
			name: "ahead, first", lines: []string{years, common(9, "GET /", 200), common(10, "GET /", 200)},
			outliers: 1,
			pass:     2,
		},
		{name: "ahead, last", lines: []string{common(9, "GET /", 200), years}, pass: 2},
		{
			name:  "behind",
			lines: []string{common(9, "GET /", 200), common(-900*day, "GET /", 200), common(10, "GET /", 200)}, late: 1,
			pass: 2,
		},
		{
			name:  "behind, first",
			lines: []string{common(-900*day, "GET /", 200), common(9, "GET /", 200), common(10, "GET /", 200)},
			pass:  3,
		},
		{
			name:   "future",
			lines:  []string{common(9, "GET /", 200), common(90*365*day, "GET /", 200), common(10, "GET /", 200)},
			future: 1, pass: 2,
		},
		{
			name: "the last possible time",
			lines: []string{
				common(9, "GET /", 200), strings.Replace(common(8, "GET /", 200), "2023", "9999", 1),
				common(10, "GET /", 200),
			}, future: 1, pass: 2,
		},
		{name: "back permanently", lines: []string{
			strings.Repeat(common(5000, "GET /", 200), 20), common(1, "GET /", 200),
			common(2, "GET /", 200), common(3, "GET /", 200),
		}, late: 3, pass: 20},
		{
			name:  "ahead permanently",
			lines: []string{common(1, "GET /", 200), common(5000, "GET /", 200), common(5001, "GET /", 200)}, pass: 3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := replay(t, strings.Join(c.lines, ""))
			var pass int64
			for _, n := range s.pass {
				pass += n
			}
			if r.Late != c.late || r.Future != c.future || r.Outliers != c.outliers || pass != c.pass {
				t.Errorf("%d passed, %d late, %d future, %d outliers; want %+v", pass, r.Late, r.Future, r.Outliers, c)
			}
		})
	}
}

// A wrong time in one log does not delay the others.
func TestWildTimeBesideAnotherLog(t *testing.T) {
	dir := t.TempDir()
	var a, b strings.Builder
	for i := range 1000 {
		a.WriteString(common(i, "GET /a", 200))
		b.WriteString(common(i, "GET /b", 200))
		if i == 500 {
			a.WriteString(common(900*86400, "GET /wild", 200) + common(90*365*86400, "GET /wild", 200))
		}
	}
	o := options(t, write(t, filepath.Join(dir, "a"), []byte(a.String())),
		write(t, filepath.Join(dir, "b"), []byte(b.String())))
	o.Tolerance = 0
	var s sums
	r, err := Run(t.Context(), o, s.add)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "pass", s.pass, map[string]int64{"GET /a": 1000, "GET /b": 1000})
	if r.Late != 0 || r.Future != 1 || r.Outliers != 1 {
		t.Errorf("report: %+v", r)
	}
}

func TestRubbish(t *testing.T) {
	good := common(1, "GET /", 200)
	f, err := accesslog.Named("common")
	if err != nil {
		t.Fatal(err)
	}
	withFormat := func(o *Options) { o.Format = f }
	s, r := replay(t, good+strings.Repeat("x", 3<<20)+"\n"+good+"\x00\x1b[31m\xff\n"+
		good+strings.Repeat("y", 1<<20), withFormat)
	equal(t, "pass", s.pass, map[string]int64{"GET /": 3})
	if r.Lines != 6 || r.Malformed != 3 || len(r.Examples) != 2 {
		t.Fatalf("report: %+v", r)
	}
	if x := r.Examples[0]; x.Line != 4 || x.Text != "\x00\x1b[31m\xff\n" {
		t.Errorf("example: %+v", x)
	}
	_, r = replay(t, strings.Repeat("nothing\n", 1000), withFormat)
	if r.Malformed != 1000 || len(r.Examples) != maxExamples {
		t.Errorf("report: %d malformed, %d examples", r.Malformed, len(r.Examples))
	}
	long, err := accesslog.Apache(`%t "%r" %>s %D`)
	if err != nil {
		t.Fatal(err)
	}
	line := func(at, duration string) string {
		return fmt.Sprintf("[%s +0000] \"GET / HTTP/1.1\" 200 %s\n", at, duration)
	}
	_, r = replay(t, line("17/May/2015:10:05:03", "1000")+line("17/May/2015:10:05:03", "999999999999999")+
		line("17/May/1969:10:05:03", "1")+line("17/May/2015:10:05:03", "-"),
		func(o *Options) { o.Format = long })
	if r.Malformed != 3 || r.Examples[0].Err != errTooLong || r.Examples[1].Err != errTooOld ||
		r.Examples[2].Err != errNoDuration {
		t.Errorf("report: %+v", r)
	}
}

// The lines before the damage in a packed log count.
func TestTornLogs(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		b.WriteString(common(i/100, "GET /", 200+i*7919%97))
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"gzip": pack(t, []byte(b.String())).Bytes(),
		"zstd": z.EncodeAll([]byte(b.String()), nil),
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, write(t, filepath.Join(t.TempDir(), "torn"), data[:len(data)*9/10]))
			var pass int64
			r, err := Run(t.Context(), o, func(s *Second) error { pass += s.Total.Pass; return nil })
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "torn") {
				t.Errorf("error: %v", err)
			}
			if r.Lines < 100_000 || r.Lines >= 200_000 || pass != r.Lines || r.Malformed != 0 {
				t.Errorf("%d lines, %d malformed, %d passed", r.Lines, r.Malformed, pass)
			}
		})
	}
	o := options(t, write(t, filepath.Join(t.TempDir(), "torn"), []byte("\x1f\x8b\x08")))
	if _, err := Run(t.Context(), o, (&sums{}).add); err == nil || !strings.Contains(err.Error(), "torn: ") {
		t.Errorf("error of three bytes of gzip: %v", err)
	}
}

// The error names all logs that cannot be read.
func TestLogsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	o := options(t, filepath.Join(dir, "missing"), dir, write(t, filepath.Join(dir, "text"), []byte("hello\nworld\n")))
	_, err := Run(t.Context(), o, (&sums{}).add)
	for _, want := range []string{
		"missing: no such file", dir + " is a directory",
		"text: cannot detect the log format",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in the error: %v", want, err)
		}
	}
}

func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range 5000 {
			if _, err := f.WriteString(common(i, "GET /", 200)); err != nil {
				t.Error(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	var s sums
	if _, err := Run(t.Context(), options(t, path), s.add); err != nil {
		t.Fatal(err)
	}
	equal(t, "pass", s.pass, map[string]int64{"GET /": 5000})
}

// Beyond MaxResources, further resources share one, and no call is lost.
func TestManyResources(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		b.WriteString(common(i/100, "GET /"+strings.Repeat(string(rune('a'+i%26)), 1+i/26%20), 200))
	}
	s, _ := replay(t, b.String(), func(o *Options) { o.MaxResources = 10 })
	var pass int64
	for _, n := range s.pass {
		pass += n
	}
	if s.pass[collector.Other] == 0 || pass != 3000 {
		t.Errorf("%d resources, %d passed: %v", len(s.pass), pass, s.pass)
	}
}

// The replay ends with an error of the callback, and with its context.
func TestRunEnds(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "access.log"),
		bytes.Repeat([]byte(common(1, "GET /", 200)+common(1000, "GET /", 200)), 100_000))
	enough := errors.New("enough")
	if _, err := Run(t.Context(), options(t, path), func(*Second) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, options(t, path), func(*Second) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	for range 20 { // canceling must not look like the end of the log
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := Run(ctx, options(t, path), func(*Second) error { cancel(); return nil }); !errors.Is(err,
			context.Canceled) {
			t.Fatalf("error: %v", err)
		}
	}
}

func TestParseStatuses(t *testing.T) {
	for list, want := range map[string]string{
		"5xx,429":        "429 500 599",
		" 404 , 500-503": "404 500 503", "": "", "4XX": "400 499",
	} {
		s, err := ParseStatuses(list)
		if err != nil {
			t.Errorf("%q: %v", list, err)
		}
		for _, status := range strings.Fields(want) {
			var n int
			if _, err := fmt.Sscan(status, &n); err != nil || !s[n] {
				t.Errorf("%q: no %s", list, status)
			}
		}
		if s[200] || s[600] || s[399] {
			t.Errorf("%q: too many", list)
		}
	}
	for _, list := range []string{"5x", "0xx", "99", "500-", "503-500", "abc", "+99", ",", "1000", "500-5xx", "-500"} {
		if _, err := ParseStatuses(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}
