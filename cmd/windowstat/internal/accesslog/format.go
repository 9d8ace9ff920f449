// Package accesslog parses the lines of access logs: time, duration, request, client and status of each call.
//
// A [Format] describes the lines. It comes by name ([Named]), from the format string of nginx or Apache's httpd ([Nginx],
// [Apache]), or from some lines ([Detect]). Each goroutine needs a [Parser] of its own:
//
//	f, err := accesslog.Named("combined")
//	p := f.NewParser(nil)
//	var r accesslog.Record
//	for lines.Scan() {
//		if err := p.Parse(lines.Bytes(), &r); err != nil {
//			bad++ // errors are made once for each format: a bad line costs no more than a good one
//			continue
//		}
//		count(&r)
//	}
//
// A format string is compiled into a list of fields, each with the literal text behind it. The parser stops at the last
// field that a record needs. So a format without a duration ends at the status, "common" parses combined lines, and a
// line that is cut off in its user agent is valid. A line that ends between the status and the duration has no duration;
// one that ends before its status is an error.
//
// Servers stamp their lines at either end of a call. nginx and Caddy log the time when they write the line, httpd and
// Traefik (StartUTC) when the request came: [Record].Stamp tells which. The named formats common,
// combined, vhost-combined and combined-usec are taken for httpd's, combined-time for nginx's.
//
// Caveats: the server's escapes (\", \x22) in the target and in JSON strings are undone. JSON is
// scanned, not validated. A field before the status ends where its separator and a status follow, so that raw quotes and
// spaces in a request do no harm; any other field ends at its first separator that is not an escaped
// quote. Clocks of servers have no leap seconds, and a line of one, :60, is an error.
package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Format describes the lines of a log. It is immutable and safe for concurrent use.
//
// A text format is a list of steps, one for each field, of which a parser takes those up to the last that a record needs. JSON has none:
// its keys say what its values are.
type Format struct {
	name     string
	json     bool
	unit     time.Duration // of JSON's durations that do not tell it
	prefix   []byte        // literal text before the first field
	noPrefix error
	steps    []step
	needed   int   // how many of the steps a record needs
	required int   // a line may end behind this step
	stamp    Stamp // of all lines; in JSON the key decides
	escaped  bool  // a backslash before a quote makes it part of the field
	syslog   bool  // a header of syslog may be in front
}

// String returns the name of a named format, otherwise the format string.
func (f *Format) String() string { return f.name }

// HasDuration reports whether lines have a duration. JSON lines may have one.
func (f *Format) HasDuration() bool {
	return f.json || slices.ContainsFunc(f.steps, func(s step) bool { return s.slot == duration })
}

// presets are the named formats, each as a format string of httpd with what that lacks: %{+s}T is added to the duration. Of those that
// leave equally much of a line unread, [Detect] takes the first.
var presets = []struct {
	name, format string
	unit         time.Duration // of JSON's durations that do not tell it; 0 if the format is not JSON
}{
	{"ingress-nginx", `%h - %u [%{end:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" ` +
		`%I %{s}T [%{upstream}x] [%{alternative}x] %{address}x %{length}x %{time}x %{status}x %{id}x`, 0},
	{"haproxy", `%a:%p [%{%d/%b/%Y:%H:%M:%S}t.%{msec_frac}t] %{frontend}x %{backend}x ` +
		`%{TR}x/%{Tw}x/%{Tc}x/%{Tr}x/%{ms}T %>s %B %{CC}x %{CS}x %{tsc}x %{connections}x %{queues}x %{captures}x"%r"`, 0},
	{"istio", `[%{begin:%Y-%m-%dT%H:%M:%S%z}t] "%r" %>s %{flags}x %{details}x %{failure}x "%{tls}x" %I %O %{ms}T %{upstream}x ` +
		`"%{X-Forwarded-For}i" "%{User-Agent}i" "%{id}x" "%{Host}i" %{more}x`, 0},
	{"envoy", `[%{begin:%Y-%m-%dT%H:%M:%S%z}t] "%r" %>s %{flags}x %I %O %{ms}T %{upstream}x ` +
		`"%{X-Forwarded-For}i" "%{User-Agent}i" "%{id}x" "%{Host}i" %{more}x`, 0},
	{"alb", `%{type}x %{end:%Y-%m-%dT%H:%M:%S%z}t %{elb}x %a:%p %{target}x %{s}T %{+s}T %{+s}T %>s ` +
		`%{status}x %I %O "%r" %{more}x`, 0},
	{"traefik", `%h - %u [%{begin:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %k "%{router}n" "%{server}n" %{ms}Tms`, 0},
	{"vhost-combined", `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`, 0},
	{"combined-usec", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D`, 0},
	{"combined-time", `%h %l %u [%{end:%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{s}T`, 0},
	{"combined", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, 0},
	{"common", `%h %l %u %t "%r" %>s %b`, 0},
	{"json", "", seconds},
	{"json-ms", "", milliseconds},
	{"json-us", "", microseconds},
	{"json-ns", "", nanoseconds},
}

// Names returns the names of the named formats.
func Names() []string {
	var names []string
	for _, n := range presets {
		names = append(names, n.name)
	}
	return names
}

// Named returns a format by name:
//
//   - common, combined: those of httpd and nginx;
//   - vhost-combined: combined behind the virtual host and its port, as Debian's httpd writes it;
//   - combined-time: combined, and behind it nginx's $request_time, in seconds;
//   - combined-usec: combined, and behind it httpd's %D, in microseconds;
//   - traefik: the text format of Traefik, combined with more behind it, and the duration in milliseconds;
//   - ingress-nginx: the default of that controller;
//   - haproxy: HAProxy's "option httplog", behind the header of syslog or without one;
//   - envoy, istio: their default text formats;
//   - alb: the access logs of AWS's application load balancers;
//   - json: an object in each line, with the keys of Caddy, of Traefik, or of nginx's variables; in json-ms, json-us and json-ns
//     numbers under "duration" are of that unit, and not seconds.
//
// The error for another name lists these.
func Named(name string) (*Format, error) {
	for _, n := range presets {
		switch {
		case n.name != name:
		case n.unit != 0:
			return &Format{name: name, json: true, unit: n.unit}, nil
		default:
			f, err := Apache(n.format)
			if err != nil {
				return nil, err
			}
			f.name, f.syslog = n.name, n.name == "haproxy"
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no log format named %q; there are %s", name, strings.Join(Names(), ", "))
}

// A Parser parses lines of one format. One goroutine may use it. It remembers what makes the next line quicker, the last time, and what the
// next line may continue: a line that was split.
type Parser struct {
	format *Format
	clock  clock
	buf    []byte    // unescaped strings
	parts  [2][]byte // of lines that a container's runtime has split, in stdout and stderr
	strict bool      // fields that are skipped must look like what they are, and none may be missing
}

// NewParser returns a parser. Times without a zone are in zone; nil is UTC, so that a log means the same on every machine.
func (f *Format) NewParser(zone *time.Location) *Parser {
	if zone == nil {
		zone = time.UTC
	}
	return &Parser{format: f, clock: clock{zone: zone}}
}

// Ambiguous returns how many of the lines so far are of an hour that comes twice when clocks are set back. They were taken for those
// of the nearer one to the line before, or the first.
func (p *Parser) Ambiguous() int64 { return p.clock.ambiguous }

// Parse parses a line, with or without its line feed, and overwrites r. The error names the field that did not match, and what
// it should look like; r is invalid then. All errors are made beforehand, and Parse does not allocate, but for times that are none and
// durations such as 1m2.5s.
func (p *Parser) Parse(line []byte, r *Record) error {
	p.buf = p.buf[:0]
	// What is around a line is taken off first: all formats may be in it.
	line, whole := p.unwrap(trimEnd(line))
	if !whole {
		return ErrPartial
	}
	*r = Record{Stamp: p.format.stamp}
	if len(line) == 0 {
		return errEmpty
	}
	_, err := p.read(line, r)
	return err
}

// read reads a line that is not empty, and returns what is behind the fields of a text format.
func (p *Parser) read(line []byte, r *Record) (rest []byte, err error) {
	if p.format.json {
		return nil, p.object(line, r)
	}
	return p.fields(line, r)
}

// trimEnd cuts off the end of the line, be it LF or CR LF.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// Stamp is the end of a call that the time of its line is. It decides the second in which the call is counted: a server that stamps beginnings
// and writes lines at the end has lines out of order by as long as calls take.
type Stamp uint8

// The two ends of a call.
const (
	Start Stamp = iota // when the request came
	End                // when the line was written
)

// A Record is a call, as its line describes it. Its slices point into the line or into the [Parser], and are valid until
// the next Parse and as long as the line is.
type Record struct {
	Time        time.Time     // in UTC
	Stamp       Stamp         // which end of the call Time is
	Coarse      bool          // Time has no fraction of a second
	Duration    time.Duration // never negative: a clock that was set back makes it 0
	HasDuration bool
	Status      int // 0 to 999; 0 if the server had none to log ("-", or nginx's 000)

	// Method and Target are those of the request line, the target percent-encoded if the client sent it so. Both are empty
	// if the line has a request that is not of three parts, method, target and HTTP/version: rubbish, or "-".
	Method, Target []byte

	Host, Client []byte // empty if the line has none
}

// splitRequest returns method and target of a request line, or nothing unless it has three parts. Spaces within the target,
// which some clients send, are part of it.
func splitRequest(line []byte) (method, target []byte) {
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if first == last || !bytes.HasPrefix(line[last+1:], []byte("HTTP/")) {
		return nil, nil
	}
	method, target = line[:first], line[first+1:last]
	if !isMethod(method) || len(target) == 0 {
		return nil, nil
	}
	return method, target
}

// isMethod reports whether b is a token, as the methods and the names of headers are.
func isMethod(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return len(b) > 0
}
