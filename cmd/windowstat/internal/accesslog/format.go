package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// A Format says how the lines of a log look. It does not change and is safe for concurrent use.
type Format struct {
	name     string
	json     bool
	prefix   string // what lines begin with, in front of the first field
	noPrefix error
	steps    []step
	required int   // the step behind which a line may end
	moment   int   // the step of the time, or of its first piece
	composed bool  // the time is made of pieces
	stamp    Stamp // of all lines; JSON has one for each key
	escaped  bool  // a backslash in front of a quote makes it part of the field
	duration bool
}

// String returns the name of a named format, and the format string of another.
func (f *Format) String() string { return f.name }

// HasDuration says whether lines have a duration. Lines of JSON may have one or not.
func (f *Format) HasDuration() bool { return f.duration }

// named are the formats that have names, the more particular ones first, so that Detect tries them in this order.
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

// Names are the names that [Named] knows.
func Names() []string {
	names := make([]string, 0, len(named)+1)
	for _, n := range named {
		names = append(names, n.name)
	}
	return append(names, jsonName)
}

// Named returns the format of a name:
//
//   - common, combined: those of httpd and nginx;
//   - vhost-combined: combined behind the virtual host and its port, as Debian's httpd writes it;
//   - combined-time: combined, and behind it nginx's $request_time, in seconds;
//   - combined-usec: combined, and behind it httpd's %D, in microseconds;
//   - traefik: the text format of Traefik, combined with more behind it, and the duration in milliseconds;
//   - json: an object in each line, with the keys of Caddy, of Traefik, or of nginx's variables.
//
// Another name is an error that lists these.
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

// A Parser reads lines of one format. It is for one goroutine.
type Parser struct {
	format *Format
	clock  clock
	buf    []byte // strings of JSON that had escapes
}

// NewParser returns a parser. Times that are written without a zone are in zone; nil means UTC, so that a log reads
// alike on every machine.
func (f *Format) NewParser(zone *time.Location) *Parser {
	if zone == nil {
		zone = time.UTC
	}
	return &Parser{format: f, clock: clock{zone: zone}}
}

// Parse reads a line, with or without the line feed at its end, and overwrites r. The error says which field did not
// match and what it should look like; it is made beforehand, and r is of no use then. Parse does not allocate.
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
