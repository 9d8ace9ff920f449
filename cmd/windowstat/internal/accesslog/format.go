package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// A Format describes the lines of a log. It is immutable and safe for concurrent use.
type Format struct {
	name      string
	json      bool
	unit      int    // of JSON's durations that do not tell it
	prefix    string // literal text before the first field
	noPrefix  error
	steps     []step
	required  int   // a line may end behind this step
	timestamp int   // the step of the time, or of its first part
	composed  bool  // the time has several parts
	stamp     Stamp // of all lines; in JSON the key decides
	escaped   bool  // a backslash before a quote makes it part of the field
	duration  bool
	syslog    bool // a header of syslog may be in front
}

// String returns the name of a named format, otherwise the format string.
func (f *Format) String() string { return f.name }

// HasDuration reports whether lines have a duration. JSON lines may have one.
func (f *Format) HasDuration() bool { return f.duration }

// named are the named formats, the more specific ones first: Detect tries them in this order.
var named = []struct {
	name, format string
	stamp        Stamp
	nginx        bool // the format is written as nginx's, and not as httpd's
	unit         int  // of the duration, if it is another than in such a format
}{
	{"ingress-nginx", `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ` +
		`$request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] ` +
		`$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id`, End, true, 0},
	{"haproxy", `%a:%{port}x [%{%d/%b/%Y:%H:%M:%S}t.%{msec_frac}t] %{frontend}x %{backend}x ` +
		`%{TR}x/%{Tw}x/%{Tc}x/%{Tr}x/%{ms}T %>s %B %{CC}x %{CS}x %{tsc}x %{connections}x %{queues}x %{captures}x"%r"`, Start, false, 0},
	{"istio", `[$time_iso8601] "$request" $status $flags $details $failure "$tls" $received $sent $request_time $upstream_time ` +
		`"$xff" "$agent" "$id" "$host" $rest`, Start, true, milliseconds},
	{"envoy", `[$time_iso8601] "$request" $status $flags $received $sent $request_time $upstream_time ` +
		`"$xff" "$agent" "$id" "$host" $rest`, Start, true, milliseconds},
	{"alb", `$type $time_iso8601 $elb $remote_addr:$port $target $request_time $more_time $more_time $status ` +
		`$target_status $received $sent "$request" $rest`, End, true, 0},
	{"traefik", `%h - %u [%{%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{count}n "%{router}n" "%{server}n" %{ms}Tms`, Start, false, 0},
	{"vhost-combined", `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`, Start, false, 0},
	{"combined-time", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{s}T`, End, false, 0},
	{"combined-usec", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D`, Start, false, 0},
	{"combined", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, Start, false, 0},
	{"common", `%h %l %u %t "%r" %>s %b`, Start, false, 0},
}

// jsonNames are those of JSON, with the units of durations that do not tell theirs.
var jsonNames = []struct {
	name string
	unit int
}{{"json", seconds}, {"json-ms", milliseconds}, {"json-us", microseconds}, {"json-ns", nanoseconds}}

// Names returns the names of the named formats.
func Names() []string {
	var names []string
	for _, n := range named {
		names = append(names, n.name)
	}
	for _, j := range jsonNames {
		names = append(names, j.name)
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
	for _, j := range jsonNames {
		if j.name == name {
			return &Format{name: name, json: true, unit: j.unit, duration: true}, nil
		}
	}
	for _, n := range named {
		if n.name == name {
			compile := Apache
			if n.nginx {
				compile = Nginx
			}
			f, err := compile(n.format)
			if err != nil {
				return nil, err
			}
			f.name, f.stamp, f.syslog = n.name, n.stamp, n.name == "haproxy"
			for i := range f.steps {
				if n.unit != 0 && f.steps[i].slot == duration {
					f.steps[i].unit = n.unit
				}
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no log format named %q; there are %s", name, strings.Join(Names(), ", "))
}

// A Parser parses lines of one format. One goroutine may use it.
type Parser struct {
	format *Format
	clock  clock
	buf    []byte // unescaped strings of JSON
}

// NewParser returns a parser. Times without a zone are in zone; nil is UTC, so that a log means the same on every machine.
func (f *Format) NewParser(zone *time.Location) *Parser {
	if zone == nil {
		zone = time.UTC
	}
	return &Parser{format: f, clock: clock{zone: zone}}
}

// Untold returns how many of the lines so far are of an hour that comes twice when clocks are set back, and their order does not
// tell which of the two it is. They were taken for those of the first, or of the nearer one. Later lines may still tell.
func (p *Parser) Untold() int64 { return p.clock.untold }

// Parse parses a line, with or without its line feed, and overwrites r. The error names the field that did not match, and what
// it should look like; r is invalid then. Parse does not allocate: all errors are made beforehand.
func (p *Parser) Parse(line []byte, r *Record) error {
	p.buf = p.buf[:0]
	line = p.unwrap(trimEnd(line))
	*r = Record{Stamp: p.format.stamp}
	if len(line) == 0 {
		return errEmpty
	}
	if p.format.json {
		return p.object(line, r)
	}
	return p.text(line, r)
}

// trimEnd cuts off the end of the line, be it LF or CR LF.
func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
