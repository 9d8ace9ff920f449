package replay

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

const (
	caddyMessage = `{"level":"info","ts":1795341600.1,"logger":"tls","msg":"x"}` + "\n"
	caddyCall    = `{"level":"info","ts":1795341601.1,"logger":"http.log.access","msg":"handled request",` +
		`"request":{"client_ip":"192.0.2.1","method":"GET",` +
		`"host":"a.example","uri":"/"},"duration":0.007,"status":200}` + "\n"
	nginxMessage = "2026/11/22 10:00:00 [notice] 1#1: using the \"epoll\" event method\n"
	nginxCall    = `192.0.2.1 - - [22/Nov/2026:10:00:01 +0000] "GET / HTTP/1.1" 200 17 "-" "ua" 0.007` + "\n"
)

// Lines that cannot be calls are counted by kind. They are not errors, regardless of their number and of whether the
// format is given or detected.
func TestOtherLines(t *testing.T) {
	for name, c := range map[string]struct {
		log, format string
		calls       int64
		others      Others
		malformed   int64
	}{
		"Caddy": {
			strings.Repeat(caddyMessage, 15) + strings.Repeat(caddyCall, 10), "json", 10,
			Others{accesslog.Message: 15},
			0,
		},
		"a long start": {
			strings.Repeat(nginxMessage, 1500) + strings.Repeat(nginxCall, 10), "combined-time", 10,
			Others{accesslog.Message: 1500},
			0,
		},
		"a long message": {
			strings.Repeat(caddyMessage, 3000) + caddyCall, "json", 1,
			Others{accesslog.Message: 3000},
			0,
		},
		"empty lines": {
			strings.Repeat("\n", 400) + strings.Repeat(nginxCall+"\r\n", 10), "combined-time", 10,
			Others{accesslog.Empty: 410},
			0,
		},
		"directives": {
			strings.Repeat("#Version: 1.0\n", 30) + nginxCall, "combined-time", 1,
			Others{accesslog.Directive: 30},
			0,
		},
		"W3C": {
			"#Fields: date time c-ip cs-method cs-uri-stem sc-status time-taken\n" +
				"2026-11-22 10:00:01 192.0.2.1 GET / 200 7\n" +
				"#Fields: date time sc-status cs-method cs-uri-stem time-taken\n2026-11-22 10:00:02 200 GET / 9\n",
			"w3c", 2,
			Others{accesslog.Directive: 2},
			0,
		},
		"a torn line": {
			strings.Repeat(nginxMessage, 20) + strings.Repeat(nginxCall, 3) + nginxCall[:55] + "\n",
			"combined-time", 3,
			Others{accesslog.Message: 20},
			1,
		},
	} {
		for _, given := range []bool{false, true} {
			s, r := replay(t, c.log, func(o *Options) {
				if given {
					o.Format = named(t, c.format)
				}
			})
			var calls int64
			for _, n := range s.pass {
				calls += n
			}
			if calls != c.calls || r.Others != c.others || r.Malformed != c.malformed ||
				r.Lines != c.calls+c.malformed+sum(c.others) || !r.Timed && c.format != "common" {
				t.Errorf("%s, format given: %v: %d calls, %d lines, others %v, %d malformed, timed %v; want %+v", name,
					given, calls, r.Lines, r.Others, r.Malformed, r.Timed, c)
			}
			if err := r.TooMany(0.1, DefaultLate); (err != nil) != (c.malformed > 0) {
				t.Errorf("%s: %v", name, err)
			}
			var out bytes.Buffer
			if err := r.Print(&out, &out); err != nil {
				t.Fatal(err)
			}
			if n := c.others[accesslog.Message]; n > 0 &&
				!strings.Contains(out.String(),
					fmt.Sprintf("%12d messages of a server or a script, which are not calls\n", n)) {
				t.Errorf("%s: %s", name, &out)
			}
		}
	}
}

// Other lines do not hide a large share of late lines.
func TestLateLinesAmongOtherLines(t *testing.T) {
	late := strings.Replace(nginxCall, "22/Nov/2026:10:00:01", "22/Nov/2026:08:00:01", 1)
	_, r := replay(t, strings.Repeat(nginxMessage, 5000)+strings.Repeat(nginxCall, 10)+late, func(o *Options) {
		o.Format = named(t, "combined-time")
	})
	if len(r.Behind) != 1 || r.Behind[0].Lines != 11 || r.Behind[0].Late != 1 || r.TooMany(0.1, DefaultLate) == nil {
		t.Errorf("%+v, %d late", r.Behind, r.Late)
	}
}

// Lines that the previous process counted are not counted again, whatever their kind.
func TestOtherLinesBeforeARestart(t *testing.T) {
	o := options(t)
	o.Format = named(t, "combined-time")
	r, err := newFollower(o)
	if err != nil {
		t.Fatal(err)
	}
	l := r.newLog("log")
	block1 := block{data: []byte(nginxMessage + "\n" + nginxCall)}
	r.after = time.Date(2026, 11, 22, 10, 0, 5, 0, time.UTC).Unix()
	r.parse(l, block1)
	if x := r.Report(); x.Others != (Others{}) || x.Lines != 1 {
		t.Errorf("old lines: %v of %d lines", x.Others, x.Lines)
	}
	r.after = 0
	r.parse(l, block1)
	if x := r.Report(); x.Others != (Others{accesslog.Message: 1, accesslog.Empty: 1}) || x.Lines != 4 ||
		l.count.Lines != 2 {
		t.Errorf("new lines: %v of %d lines, %d of them calls", x.Others, x.Lines, l.count.Lines)
	}
}

// A log in a wrong format is an error, because its lines could be calls.
func TestWrongFormatIsAFault(t *testing.T) {
	for format, log := range map[string]string{
		"json": nginxCall, "combined": caddyCall,
		"haproxy": nginxCall, "w3c": caddyCall,
	} {
		_, r := replay(t, strings.Repeat(log, 10), func(o *Options) { o.Format = named(t, format) })
		if r.Malformed != 10 || r.TooMany(0.1, DefaultLate) == nil {
			t.Errorf("%s: %d malformed of %d lines, others %v", format, r.Malformed, r.Lines, r.Others)
		}
	}
}

func named(t *testing.T, name string) *accesslog.Format {
	t.Helper()
	f, err := accesslog.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A hole of any length damages only the line whose end it replaced.
func TestHoles(t *testing.T) {
	for _, size := range []int{minHole, 100, 5000, blockSize - 100, blockSize, maxLine + 7, 2 << 20, 5 << 20} {
		nuls := strings.Repeat("\x00", size)
		for name, c := range map[string]struct {
			log              string
			calls, malformed int64
		}{
			"in front":            {nuls + strings.Repeat(nginxCall, 3), 3, 0},
			"between":             {strings.Repeat(nginxCall, 3) + nuls + strings.Repeat(nginxCall, 3), 6, 0},
			"JSON":                {caddyCall + nuls + caddyCall + nuls + caddyCall, 3, 0},
			"the end":             {strings.Repeat(nginxCall, 3) + nuls, 3, 0},
			"the end of a line":   {nginxCall + strings.TrimSuffix(nginxCall, "\n") + nuls + "\n" + nginxCall, 3, 0},
			"a torn line":         {nginxCall + nginxCall[:55] + nuls + nginxCall, 2, 1},
			"a torn line of many": {nginxCall + nginxCall[:55] + nuls + strings.Repeat(nginxCall, 5), 6, 1},
			"two torn lines":      {caddyCall + caddyCall[:100] + nuls + caddyCall[:100] + nuls + caddyCall, 2, 2},
			"a torn agent":        {nginxCall + nginxCall[:strings.Index(nginxCall, `ua"`)+1] + nuls + nginxCall, 2, 1},
		} {
			for _, given := range []bool{false, true} {
				if !given && 2*c.malformed >= c.calls {
					continue // most lines do not have the format
				}
				s, r := replay(t, c.log, func(o *Options) {
					if given {
						o.Format = named(t,
							map[bool]string{true: "json", false: "combined-time"}[strings.Contains(c.log, "{")])
					}
				})
				if s.pass["GET /"] != c.calls || r.Malformed != c.malformed || !r.Timed {
					t.Errorf("%s, %d NULs, format given: %v: %d calls, %d malformed, timed %v, want %d, %d (others %v)",
						name, size, given, s.pass["GET /"], r.Malformed, r.Timed, c.calls, c.malformed, r.Others)
				}
			}
		}
	}
}

// A byte order mark is not part of the first line. UTF-16 is an error that names the encoding.
func TestByteOrderMarks(t *testing.T) {
	for _, line := range []string{caddyCall, nginxCall} {
		s, r := replay(t, "\uFEFF"+line+"\uFEFF"+line)
		if s.pass["GET /"] != 2 || r.Malformed != 0 {
			t.Errorf("%q: %v, %d malformed", line, s.pass, r.Malformed)
		}
		for _, big := range []bool{false, true} {
			var b []byte
			for _, unit := range utf16.Encode([]rune("\uFEFF" + line)) {
				if big {
					b = append(b, byte(unit>>8), byte(unit))
				} else {
					b = append(b, byte(unit), byte(unit>>8))
				}
			}
			_, err := Run(t.Context(), options(t, write(t, filepath.Join(t.TempDir(), "log"), b)), (&sums{}).add)
			if err == nil || !strings.Contains(err.Error(), "UTF-16") {
				t.Errorf("%v", err)
			}
		}
	}
}

// FuzzBlocks reads arbitrary data in blocks. The lines equal the lines of the data without NULs, and each hole ends a
// line.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte("a\nb\x00\x00c\n\x00\n\x00d"), uint8(3))
	f.Add([]byte("a"+strings.Repeat("\x00", minHole)+"b\x00c\n"+strings.Repeat("\x00", 3*minHole)+"d"), uint8(9))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		hole := strings.Repeat("\x00", minHole)
		clean := func(b []byte) (lines []string) {
			for line := range strings.SplitSeq(string(b), "\n") {
				for line = strings.TrimLeft(line, "\x00"); line != ""; {
					first, rest, _ := strings.Cut(line, hole)
					lines, line = append(lines, first), strings.TrimLeft(rest, "\x00")
				}
			}
			return lines
		}
		all := blocks{r: &slowReader{data: data, size: int(size%16) + 1}}
		var got []string
		var buf []byte
		for {
			x, err := all.next(buf)
			got = append(got, clean(x.data)...)
			for line := range bytes.Lines(x.data) {
				if bytes.Contains(bytes.TrimLeft(line, "\x00"), []byte(hole)) {
					t.Fatalf("%q: a hole within the line %q", data, line)
				}
			}
			if buf = x.data; err != nil {
				break
			}
		}
		if want := clean(data); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: %q, want %q", data, got, want)
		}
	})
}

// slowReader returns few bytes at a time.
type slowReader struct {
	data []byte
	size int
}

func (r *slowReader) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.data[:min(r.size, len(r.data))])
	r.data = r.data[n:]
	return n, nil
}
