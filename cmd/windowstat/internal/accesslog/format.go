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
	prefix    string // literal text before the first field
	noPrefix  error
	steps     []step
	required  int   // a line may end behind this step
	timestamp int   // the step of the time, or of its first part
	composed  bool  // the time has several parts
	stamp     Stamp // of all lines; in JSON the key decides
	escaped   bool  // a backslash before a quote makes it part of the field
	duration  bool
}

// String returns the name of a named format, otherwise the format string.
func (f *Format) String() string { return f.name }

// HasDuration reports whether lines have a duration. JSON lines may have one.
func (f *Format) HasDuration() bool { return f.duration }

// named are the named formats, the more specific ones first: Detect tries them in this order.
var named = []struct {
	name, format string
	stamp        Stamp
}{
	{"traefik", `%h - %u [%{%d/%b/%Y:%H:%M:%S %z}t] "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{count}n "%{router}n" "%{server}n" %{ms}Tms`, Start},
	{"vhost-combined", `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`, Start},
	{"combined-time", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{s}T`, End},
	{"combined-usec", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %D`, Start},
	{"combined", `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, Start},
	{"common", `%h %l %u %t "%r" %>s %b`, Start},
}

const jsonName = "json"

// Names returns the names of the named formats.
func Names() []string {
	names := make([]string, 0, len(named)+1)
	for _, n := range named {
		names = append(names, n.name)
	}
	return append(names, jsonName)
}

// Named returns a format by name:
//
//   - common, combined: those of httpd and nginx;
//   - vhost-combined: combined behind the virtual host and its port, as Debian's httpd writes it;
//   - combined-time: combined, and behind it nginx's $request_time, in seconds;
//   - combined-usec: combined, and behind it httpd's %D, in microseconds;
//   - traefik: the text format of Traefik, combined with more behind it, and the duration in milliseconds;
//   - json: an object in each line, with the keys of Caddy, of Traefik, or of nginx's variables.
//
// The error for another name lists these.
func Named(name string) (*Format, error) {
	if name == jsonName {
		return &Format{name: jsonName, json: true, duration: true}, nil
	}
	for _, n := range named {
		if n.name == name {
			f, err := Apache(n.format)
			if err != nil {
				return nil, err
			}
			f.name, f.stamp = n.name, n.stamp
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

// Parse parses a line, with or without its line feed, and overwrites r. The error names the field that did not match, and what
// it should look like; r is invalid then. Parse does not allocate: all errors are made beforehand.
func (p *Parser) Parse(line []byte, r *Record) error {
	line = trimEnd(line)
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
