package accesslog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// wrappings has functions that wrap a line as another program would.
var wrappings = map[string]func(line string) string{
	"":     func(l string) string { return l },
	"BOM":  func(l string) string { return "\uFEFF" + l },
	"NULs": func(l string) string { return strings.Repeat("\x00", 5000) + l },
	"Docker": func(l string) string {
		return `{"log":` + quote(l+"\n") + `,"stream":"stdout","time":"2026-11-22T10:00:02.5Z"}`
	},
	"Docker with spaces": func(l string) string { return `{ "log" : ` + quote(l+"\n") + `, "stream": "stderr"}` },
	"CRI":                func(l string) string { return "2026-11-22T10:00:02.123456789Z stdout F " + l },
	"CRI with a zone":    func(l string) string { return "2026-11-22T10:00:02.123456789+01:00 stderr F " + l },
	"RFC 3164":           func(l string) string { return "<134>Nov 22 10:00:01 web nginx: " + l },
	"RFC 3164, PID":      func(l string) string { return "<134>Nov  2 10:00:01 web haproxy[17]: " + l },
	"RFC 3164, no host":  func(l string) string { return "<134>Nov 22 10:00:01 nginx: " + l },
	"RFC 3164, no time":  func(l string) string { return "<134>haproxy[17]: " + l },
	"syslog file":        func(l string) string { return "Nov 22 10:00:01 web.example nginx: " + l },
	"syslog, no tag":     func(l string) string { return "Nov 22 10:00:01 web " + l },
	"syslog, Docker tag": func(l string) string { return "Nov 22 10:00:01 web docker/3f5c9a7b1d2e[812]: " + l },
	"syslog, container":  func(l string) string { return "Nov 22 10:00:01 web 3f5c9a7b1d2e[812]: " + l },
	"BusyBox":            func(l string) string { return "Nov 22 10:00:01 web daemon.info nginx: " + l },
	"ctime":              func(l string) string { return "Sun Nov 22 10:00:01 2026 daemon.info nginx[7]: " + l },
	"rsyslog":            func(l string) string { return "2026-11-22T10:00:01.123456+00:00 web nginx: " + l },
	"rsyslog, priority":  func(l string) string { return "<134>2026-11-22T10:00:01+00:00 web haproxy[17]: " + l },
	"short-iso":          func(l string) string { return "2026-11-22T10:00:01+0000 web nginx[17]: " + l },
	"short-precise":      func(l string) string { return "Nov 22 10:00:01.123456 web nginx[17]: " + l },
	"short-full":         func(l string) string { return "Sun 2026-11-22 10:00:01 UTC web nginx[17]: " + l },
	"RFC 5424":           func(l string) string { return "<134>1 2026-11-22T10:00:01.123Z web nginx 17 access - " + l },
	"RFC 5424, nil":      func(l string) string { return "<134>1 - - - - - - " + l },
	"RFC 5424, BOM":      func(l string) string { return "<134>1 2026-11-22T10:00:01Z web nginx - - - \uFEFF" + l },
	"RFC 5424, data": func(l string) string {
		return `<134>1 2026-11-22T10:00:01Z web nginx 17 - [a@1 k="x \"]\" ] y"][b x="1"] ` + l
	},
	"RFC 5424, tag":         func(l string) string { return "<134>1 2009-02-06T12:14:14+00:00 lb haproxy[7]: " + l },
	"RFC 5424 file":         func(l string) string { return "1 2026-11-22T10:00:01Z web nginx 17 - - " + l },
	"docker logs -t":        func(l string) string { return "2026-11-22T10:00:01.123456789Z " + l },
	"docker compose logs":   func(l string) string { return "web-1  | " + l },
	"kubectl logs --prefix": func(l string) string { return "[pod/web-7d9c/nginx] " + l },
	"RFC 6587":              func(l string) string { return "197 <134>1 2026-11-22T10:00:01Z web nginx - - - " + l },
	"journalctl -o json":    func(l string) string { return `{"_PID":"17","MESSAGE":` + quote(l) + `,"PRIORITY":"6"}` },
	"Fluent Bit": func(l string) string {
		return `{"stream":"stdout","log":` + quote(l+"\n") + `,"kubernetes":{"pod":"x"}}`
	},
	"Filebeat": func(l string) string { return `{"@timestamp":"2026-11-22T10:00:02.5Z","message":` + quote(l) + `}` },
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// plain has lines without wrappings, and the records that they contain.
var plain = map[string]struct{ line, want string }{
	"combined": {
		`2001:db8::7 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17 "-" "ua"`,
		`2026-11-22T10:00:01Z start - 200 "GET" "/a" "" "2001:db8::7"`,
	},
	"combined-time": {
		`192.0.2.7 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17 "-" "ua" 0.007`,
		`2026-11-22T10:00:01Z end 7ms 200 "GET" "/a" "" "192.0.2.7"`,
	},
	"vhost-combined": {
		`a.example:80 192.0.2.7 - - [22/Nov/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 17 "-" "ua"`,
		`2026-11-22T10:00:01Z start - 200 "GET" "/a" "a.example" "192.0.2.7"`,
	},
	"json": {
		`{"ts":1795341601.1,"status":200,"duration":0.007,"request":{"method":"GET","uri":"/a",` +
			`"client_ip":"192.0.2.7"}}`,
		`2026-11-22T10:00:01.1Z end 7ms 200 "GET" "/a" "" "192.0.2.7"`,
	},
	"haproxy": {
		`2001:db8::7:40512 [22/Nov/2026:10:00:01.100] in~ app/s1 0/0/1/6/7 200 512 - - ---- 1/1/0/0/0 0/0 ` +
			`"GET /a HTTP/1.1"`,
		`2026-11-22T10:00:01.1Z start 7ms 200 "GET" "/a" "" "2001:db8::7"`,
	},
	"envoy": {
		`[2026-11-22T10:00:01.100Z] "GET /a HTTP/2" 200 - 0 17 7 6 "192.0.2.7" "ua" "cc21d9b0" "a.example" ` +
			`"10.0.2.1:80"`,
		`2026-11-22T10:00:01.1Z start 7ms 200 "GET" "/a" "a.example" ""`,
	},
	"elb": {
		`2026-11-22T10:00:01.100000Z my-lb [2001:db8::7]:40512 10.0.0.1:80 0.001 0.004 0.002 200 200 0 57 ` +
			`"GET http://a.example:80/a HTTP/1.1" "ua" - -`,
		`2026-11-22T10:00:01.1Z start 7ms 200 "GET" "http://a.example:80/a" "" "2001:db8::7"`,
	},
	"npm-proxy": {
		`[22/Nov/2026:10:00:01 +0000] - 502, 200 200 - GET https a.example "/a" [Client 192.0.2.7] [Length 17] ` +
			`[Gzip -] [Sent-to 10.0.0.1] "ua" "-"`,
		`2026-11-22T10:00:01Z end - 200 "GET" "/a" "a.example" "192.0.2.7"`,
	},
	"npm-standard": {
		`[22/Nov/2026:10:00:01 +0000] 404 - GET https a.example "/a" [Client 192.0.2.7] [Length 17] [Gzip 1.5] "ua" ` +
			`"-"`,
		`2026-11-22T10:00:01Z end - 404 "GET" "/a" "a.example" "192.0.2.7"`,
	},
}

// Each wrapping can surround each format and each other wrapping.
func TestWrappings(t *testing.T) {
	for format, c := range plain {
		named := parser(t, format)
		for outer, wrapOuter := range wrappings {
			for inner, wrapInner := range wrappings {
				if strings.HasPrefix(inner, "NULs") && outer != "" && outer != "BOM" {
					continue // NULs precede a line of the file, not a line within another
				}
				line := []byte(wrapOuter(wrapInner(c.line)))
				p := named
				if outer == "" || inner == "Docker" { // detection takes longer than parsing
					f, err := Detect([][]byte{line})
					if err != nil || f.String() != format {
						t.Errorf("%s in %q in %q: %v, %v", format, inner, outer, f, err)
						continue
					}
					p = f.NewParser(nil)
				}
				var r Record
				if err := p.Parse(append(line, '\n'), &r); err != nil || show(&r) != c.want {
					t.Errorf("%s in %q in %q: %v\n got %s\nwant %s", format, inner, outer, err, show(&r), c.want)
				}
			}
		}
	}
}

// The lines of some formats begin with a date, which is not a header.
func TestFormatsThatBeginWithADate(t *testing.T) {
	for _, c := range []struct{ kind, format, line string }{
		{
			"nginx", `$time_iso8601 $status "$request" $host`,
			`2026-11-22T10:00:01+00:00 200 "GET /a HTTP/1.1" a.example`,
		},
		{
			"nginx", `$time_iso8601 $host tag: $status "$request"`,
			`2026-11-22T10:00:01+00:00 a.example tag: 200 "GET /a HTTP/1.1"`,
		},
		{"nginx", `$host | $status | $msec | "$request"`, `a | 200 | 1795341601.1 | "GET /a HTTP/1.1"`},
		{
			"apache", `%{%b %d %H:%M:%S %Y}t %v nginx: %>s "%r"`,
			`Nov 22 10:00:01 2026 a.example nginx: 200 "GET /a HTTP/1.1"`,
		},
	} {
		f, err := compiled(c.kind, c.format)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrapping := range []string{
			"", "BOM", "Docker", "CRI", "RFC 3164", "syslog file", "rsyslog",
			"short-full", "RFC 5424", "RFC 5424, data",
		} {
			line := wrappings[wrapping](c.line)
			var r Record
			if err := f.NewParser(nil).Parse([]byte(line), &r); err != nil || r.Status != 200 || r.Host[0] != 'a' ||
				string(r.Target) != "/a" {
				t.Errorf("%s in %q: %v, %s", c.format, wrapping, err, show(&r))
			}
		}
	}
}

// FuzzUnwrap unwraps any line, and finds any line again that was wrapped.
func FuzzUnwrap(f *testing.F) {
	names := slices.Sorted(maps.Keys(wrappings))
	formats := slices.Sorted(maps.Keys(plain))
	for i, name := range names {
		f.Add([]byte(wrappings[name]("x")), uint(i), uint(i), uint(i))
	}
	parsers := map[string]*Parser{}
	for _, name := range formats {
		parsers[name] = parser(f, name)
	}
	f.Fuzz(func(t *testing.T, line []byte, inner, outer, format uint) {
		for _, dated := range []bool{false, true} {
			p := unwrapper(dated)
			if text, whole := p.unwrap(line); whole && len(text) > len(line) {
				t.Fatalf("%q became %q", line, text)
			}
			if len(line) > 0 {
				if n := header(line, dated); n < 0 || n > len(line) {
					t.Fatalf("%q: a header of %d bytes", line, n)
				}
			}
		}
		name, in, out := formats[format%uint(len(formats))], names[inner%uint(len(names))],
			names[outer%uint(len(names))]
		if in == "NULs" {
			return
		}
		c := plain[name]
		var r Record
		if err := parsers[name].Parse([]byte(wrappings[out](wrappings[in](c.line))), &r); err != nil ||
			show(&r) != c.want {
			t.Fatalf("%s in %q in %q: %v, %s", name, in, out, err, show(&r))
		}
	})
}
