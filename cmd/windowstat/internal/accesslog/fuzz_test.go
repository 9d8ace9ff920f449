package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

// FuzzText reads any line in every named text format. If the oracle can read the line, too, both must find the same
// time.
func FuzzText(f *testing.F) {
	for _, line := range generate(50) {
		f.Add(line)
	}
	for _, line := range benchLines {
		f.Add([]byte(line))
	}
	for _, c := range samples {
		f.Add([]byte(c.line))
		f.Add([]byte("2026-11-22T10:00:02.5Z stdout F " + c.line))
		f.Add(fmt.Appendf(nil, `{"log":%q}`, c.line+"\n"))
	}
	var parsers []*Parser
	for _, n := range presets {
		if n.unit != 0 {
			continue
		}
		parsers = append(parsers, parser(f, n.name))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range parsers {
			var r Record
			if p.Parse(line, &r) != nil {
				continue
			}
			sane(t, p, line, &r)
			var want Record
			if p.format.name == "combined" && naive(line, &want) == nil && !r.Time.Equal(want.Time) {
				// The oracle may find a time in a different part of the line. With a single bracket, there is no other
				// part.
				if at := bytes.Index(line, []byte(r.Time.Format("02/Jan/2006:15:04:05"))); at < 0 &&
					strings.Count(string(line), "[") == 1 {
					t.Fatalf("%q: %s, the oracle has %s", line, r.Time, want.Time)
				}
			}
		}
	})
}

// FuzzTime formats a time in every layout of servers and parses it again, after any other text.
func FuzzTime(f *testing.F) {
	f.Add(int64(1431857103123456789), int64(450), "17/May/2015:10:05:03 +0000")
	f.Add(int64(951782400000000000), int64(-750), "29/Feb/2015:10:05:59 -0730")
	f.Add(int64(1), int64(0), "2015-05-17T10:05:59.5Z")
	common, err := newLayout(commonTime, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ns, minutes int64, before string) {
		own := []*time.Location{time.UTC, time.FixedZone("", -5400)}[uint64(minutes)%2]
		at := time.Unix(0, ns).In(time.FixedZone("", int(minutes%(14*60))*60))
		if at.Year() < 1900 {
			return
		}
		c := &clock{zone: own}
		for spelled, in := range map[string]time.Time{
			"02/Jan/2006:15:04:05 -0700": at.Truncate(time.Second), time.RFC3339Nano: at,
			"2006-01-02T15:04:05.000Z0700": at.Truncate(time.Millisecond),
			"2006/01/02 15:04:05":          at.Truncate(time.Second).In(own),
			"2006-01-02 15:04:05,000000":   at.Truncate(time.Microsecond).In(own),
		} {
			for _, l := range []*layout{jsonTimes, common} {
				if c.read(l, []byte(before)) {
					if again := (&clock{zone: own}); !again.read(l, []byte(before)) || !again.at.Equal(c.at) {
						t.Fatalf("%q: %v, and alone %v", before, c.at, again.at)
					}
				}
				text := in.Format(spelled)
				if l == common && !strings.HasPrefix(spelled, "02/") {
					continue
				}
				for range 2 {
					if !c.read(l, []byte(text)) || !c.at.Equal(in) {
						t.Fatalf("%q: %v, want %v", text, c.at, in)
					}
				}
				later := in.Add(time.Duration(minutes) % (24 * 60) * time.Minute)
				if !c.read(l, []byte(later.Format(spelled))) || !c.at.Equal(later) {
					t.Fatalf("%q, and then %q: %v, want %v", text, later.Format(spelled), c.at, later)
				}
			}
		}
	})
}

// FuzzDuration compares numbers with exact arithmetic, and durations such as 1m2.5s with time.ParseDuration.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{
		"0.123", "1e-05", "12.5E+2", "9223372036.854775807", "9223372036.854775808",
		"1646861401524102400", "1.", ".5", "-3", "-", "1h2m3.5s", "5ms", "7µs", "1s1", "99999999999999999999e-15",
		"1000000000000010000e-10", "0.0000000001m",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, has, ok := parseDuration([]byte(s), seconds)
		if !ok || !has {
			return
		}
		if d < 0 {
			t.Fatalf("%q: %s", s, d)
		}
		if strings.HasPrefix(s, "-") {
			return
		}
		if strings.ContainsAny(s, "hmsnuµμ") {
			// Each part of a duration, such as 1.5h, may lose digits below a nanosecond of its unit.
			if want, err := time.ParseDuration(s); err == nil &&
				!near(int64(d), big.NewInt(int64(want)), 3600*int64(strings.Count(s, "."))) {
				t.Fatalf("%q: %s, the library has %s", s, d, want)
			}
			return
		}
		if len(s) > 40 || strings.ContainsAny(s, "eE") && exponentOf(s) > 30 {
			return // larger durations are 0 or an error
		}
		exact, valid := new(big.Rat).SetString(s)
		if !valid {
			t.Fatalf("%q: %s, and is no number", s, d)
		}
		exact.Mul(exact, big.NewRat(1e9, 1))
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		by := 1 + int64(d)>>58
		if strings.ContainsAny(s, "eE") {
			by = 1 + int64(d)>>50 // the precision of a float64
		}
		if !near(int64(d), want, by) {
			t.Fatalf("%q: %d, exactly %s", s, d, want)
		}
	})
}

func exponentOf(s string) int {
	digits := strings.TrimLeft(s[strings.IndexAny(s, "eE")+1:], "+-0")
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), 1000)
	}
	return n
}

// near reports whether a duration differs from the exact one by at most by nanoseconds.
func near(got int64, want *big.Int, by int64) bool {
	diff := new(big.Int).Sub(big.NewInt(got), want)
	return diff.Abs(diff).Cmp(big.NewInt(by)) <= 0
}

// FuzzJSON compares the values of objects with encoding/json.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(benchLines["json-caddy"]))
	f.Add([]byte(benchLines["json-nginx"]))
	f.Add([]byte(`{"time":"2022-03-09T21:30:01Z","method":"GET","uri":"\/a\"\\\u00e4\ud83d\ude00\ud83dx",` +
		`"host":"\b\f\n\r\t","status":200}`))
	f.Add([]byte(`{"a":[[{"b":"]"}]],"time":"2022-03-09T21:30:01Z","status":"200","c":true,"duration":1e-3} `))
	p := parser(f, "json")
	f.Fuzz(func(t *testing.T, line []byte) {
		var r Record
		err := p.Parse(line, &r)
		if err == nil {
			sane(t, p, line, &r)
		}
		var want struct {
			Status json.RawMessage `json:"status"`
			Time   string          `json:"time"`
			URI    string          `json:"uri"`
			Host   string          `json:"host"`
		}
		if !utf8.Valid(line) || !json.Valid(line) || json.Unmarshal(line, &want) != nil {
			return
		}
		if err == errObject && bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{")) {
			t.Fatalf("%q: %v", line, err)
		}
		// The meanings of keys have their own tests. This one uses only keys that do not depend on others.
		var all map[string]any
		if err != nil || json.Unmarshal(line, &all) != nil || len(all) != strings.Count(string(line), `":`) ||
			bytes.Contains(line, []byte(`\u`)) && bytes.Contains(line, []byte(`\":`)) {
			return
		}
		for key := range all {
			if strings.ToLower(key) != key || !strings.Contains(string(line), `"`+key+`"`) {
				return
			}
			switch key {
			case "status", "time", "uri", "host":
			default:
				if serverKeys.find([]byte(key)) != nil {
					return
				}
			}
		}
		if at, err := time.Parse(time.RFC3339, want.Time); err == nil && !r.Time.Equal(at) {
			t.Fatalf("%q: %s, want %s", line, r.Time, at)
		}
		if want.URI != "-" && string(r.Target) != want.URI || want.Host != "-" && string(r.Host) != want.Host {
			t.Fatalf("%q: %q %q, want %q %q", line, r.Target, r.Host, want.URI, want.Host)
		}
	})
}

// FuzzUnescape compares unescaped JSON strings with encoding/json.
func FuzzUnescape(f *testing.F) {
	f.Add(`a\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud83dx\udc00`)
	f.Add(`\x22\q\u12`)
	f.Fuzz(func(t *testing.T, s string) {
		got := appendUnescaped(nil, []byte(s))
		if len(got) > len(s) {
			t.Fatalf("%q became longer: %q", s, got)
		}
		var want string
		if utf8.ValidString(s) && json.Unmarshal([]byte(`"`+s+`"`), &want) == nil && string(got) != want {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
	})
}

// FuzzFormat compiles any format string, and reads any line with it.
func FuzzFormat(f *testing.F) {
	line := benchLines["combined-time"]
	for _, s := range []string{
		nginxCombined, nginxMain, `escape=json '{"t":"$time_iso8601",' '"s":$status}';`,
		`$msec $status $uri$is_args$args ${request_time}s`,
	} {
		f.Add(s, true, line)
	}
	for _, s := range []string{
		apacheCommon, apacheVhost, apacheIO, `%{%d %b %Y %H:%M:%S %z}t %s`,
		`%{sec}t.%{usec_frac}t %U%q %>s %{ms}T`, `%{end:%F %T %z}t%%%s`,
	} {
		f.Add(s, false, line)
	}
	f.Fuzz(func(t *testing.T, format string, nginx bool, line string) {
		compile := Apache
		if nginx {
			compile = Nginx
		}
		c, err := compile(format)
		if err != nil {
			return
		}
		p := c.NewParser(nil)
		var r Record
		if p.Parse([]byte(line), &r) == nil {
			b := []byte(line)
			_ = p.Parse(b, &r)
			sane(t, p, b, &r)
		}
	})
}

// FuzzDetect calls Detect with any lines. It must return either a format or an error.
func FuzzDetect(f *testing.F) {
	for _, line := range benchLines {
		f.Add([]byte(line + "\n" + line))
	}
	for _, c := range samples {
		f.Add([]byte(c.line))
		f.Add([]byte("2026-11-22T10:00:02.5Z stdout F " + c.line))
		f.Add(fmt.Appendf(nil, `{"log":%q}`, c.line))
	}
	for _, tail := range []string{` rt=0.123 urt="0.1"`, ` "-" 0.123 0.120`, ` [a] x:y`} {
		f.Add([]byte(combinedSample + tail))
	}
	f.Fuzz(func(t *testing.T, sample []byte) {
		lines := bytes.Split(sample, []byte("\n"))
		f, err := Detect(lines)
		if err == nil && f == nil {
			t.Fatal("neither a format nor an error")
		}
		if err != nil {
			return
		}
		p := f.NewParser(nil)
		var r Record
		for _, line := range lines {
			_, _ = f.Unread(line), f.UnitUnknown(line)
			if p.Parse(line, &r) == nil && (r.Duration < 0 || r.Duration > 0 && !r.HasDuration || r.Status < 0 ||
				r.Status > 999) {
				t.Fatalf("%q: %s", line, show(&r))
			}
		}
	})
}

// sane checks the properties that every record must have.
func sane(t *testing.T, p *Parser, line []byte, r *Record) {
	t.Helper()
	if r.Status < 0 || r.Status > 999 || r.Duration < 0 || r.Duration > 0 && !r.HasDuration ||
		r.Time.Location() != time.UTC {
		t.Fatalf("%q: %s", line, show(r))
	}
	for _, s := range [][]byte{r.Method, r.Target, r.Host, r.Client} {
		if len(s) > 0 && !within(s, line) && !within(s, p.buf[:cap(p.buf)]) && !p.format.json {
			t.Fatalf("%q: %q is no part of it", line, s)
		}
		if len(s) > len(line) {
			t.Fatalf("%q: %q is longer", line, s)
		}
	}
}

func within(s, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	at := uintptr(unsafe.Pointer(&s[0])) - uintptr(unsafe.Pointer(&b[0]))
	return at < uintptr(len(b)) && int(at)+len(s) <= len(b)
}
