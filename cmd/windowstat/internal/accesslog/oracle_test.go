package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var logFile = flag.String("log", "", "a combined log, gzipped or not, to read besides generated lines")

// oracle is a second, simple parser of combined-time: a regular expression and the standard library.
var oracle = regexp.MustCompile(`(?s)^(\S*) .*? .*? \[([^\]]*)\] "((?:[^"\\]|\\.)*)" (\d{3}|-) \S* ` +
	`?(?:"(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"(?: (\S+))?)?`)

func naive(line []byte, r *Record) error {
	m := oracle.FindSubmatch(line)
	if m == nil {
		return errors.New("no match")
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(m[2]))
	if err != nil {
		return err
	}
	*r = Record{Time: at.UTC()}
	if string(m[4]) != "-" {
		r.Status, _ = strconv.Atoi(string(m[4]))
	}
	if string(m[1]) != "-" {
		r.Client = m[1]
	}
	words := strings.Split(string(m[3]), " ")
	if n := len(words); n >= 3 && strings.HasPrefix(words[n-1], "HTTP/") {
		r.Method, r.Target = []byte(words[0]), appendUnescaped(nil, []byte(strings.Join(words[1:n-1], " ")))
	}
	if len(m[5]) > 0 && string(m[5]) != "-" {
		d, err := time.ParseDuration(string(m[5]) + "s")
		if err != nil {
			return err
		}
		r.Duration, r.HasDuration = d, true
	}
	return nil
}

func TestLinesAreReadAsTheOracleReadsThem(t *testing.T) {
	lines := generate(20_000)
	if *logFile != "" {
		real := load(t, *logFile)
		t.Logf("%d lines of %s", len(real), *logFile)
		lines = append(lines, real...)
	}
	for _, name := range []string{"common", "combined", "combined-time"} {
		p := parser(t, name)
		for _, line := range lines {
			var got, want Record
			if err := naive(line, &want); err != nil {
				t.Fatalf("the oracle cannot read %q: %v", line, err)
			}
			if err := p.Parse(line, &got); err != nil {
				t.Fatalf("%s: %q: %v", name, line, err)
			}
			want.Stamp = p.format.stamp
			if name != "combined-time" {
				want.Duration, want.HasDuration = 0, false
			}
			if show(&got) != show(&want) {
				t.Fatalf("%s: %q\n got %s\nwant %s", name, line, show(&got), show(&want))
			}
		}
	}
}

// generate returns random lines of combined-time with the irregularities of real logs.
func generate(n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	lines := make([][]byte, n)
	for i := range lines {
		zone := time.FixedZone("", (rng.IntN(27*4)-12*4)*900)
		at := time.Unix(rng.Int64N(4e9), 0).In(zone)
		request := pick("GET", "POST", "PROPFIND", "M-SEARCH") + " " +
			pick("/", "/a?b=c", "/a b c", `/\"quoted\" 200 1`, `/\\`, "/\xff\xfe\x00", "/ü/日本",
				"*", "http://h/x", `/\x22`) +
			pick("", strconv.Itoa(rng.IntN(1000))) + " " + pick("HTTP/1.1", "HTTP/1.0", "HTTP/2.0")
		request = pick(request, request, request, request, "-", "", `\x16\x03\x01`, "GET /", "GET /a b", `quit\n`,
			`\"`, "\x80\x80\x01\x03\x01 x")
		duration := pick("", " -", fmt.Sprintf(" %d.%03d", rng.IntN(100), rng.IntN(1000)))
		lines[i] = fmt.Appendf(nil, `%s - %s [%s] "%s" %s %s "%s" "%s"%s`,
			pick("10.0.0.1", "2001:db8::1", "::1", "host.example", "-"), pick("-", "ann", "ann lee", `""`),
			at.Format("02/Jan/2006:15:04:05 -0700"), request,
			pick("200", "404", "499", "000", "-"), pick("-", "0", "8123"),
			pick("-", "", `http://x/\"y\" z`, "\xe4\xe5"),
			pick("-", "curl/8", `Mozilla/5.0 (\"x\")`, `a\\`, `without an end\`), duration)
	}
	return lines
}

func load(t testing.TB, path string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

func parser(t testing.TB, name string) *Parser {
	t.Helper()
	f, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.NewParser(nil)
}

// show returns a record as text, for comparisons.
func show(r *Record) string {
	duration := "-"
	if r.HasDuration {
		duration = r.Duration.String()
	}
	return fmt.Sprintf("%s %s %s %d %q %q %q %q", r.Time.UTC().Format(time.RFC3339Nano), r.Stamp, duration, r.Status,
		r.Method, r.Target, r.Host, r.Client)
}

// String names the end of a call.
func (s Stamp) String() string { return []string{"start", "end"}[s] }
