// Package accesslog parses the lines of access logs: time, duration, request, client and status of each call.
//
// A [Format] describes the lines. It is found by name ([Named]), from the format string of nginx or Apache's httpd
// ([Nginx], [Apache]), or from some lines ([Detect]). Each goroutine needs its own [Parser]:
//
//	f, err := accesslog.Named("combined")
//	p := f.NewParser(nil)
//	var r accesslog.Record
//	for lines.Scan() {
//		if err := p.Parse(lines.Bytes(), &r); err == nil {
//			count(&r)
//		} else if p.Kind() == accesslog.Call { // other lines, such as messages of the server, are no fault of the log
//			bad++ // errors are made once for each format: a bad line costs no more than a good one
//		}
//	}
//
// A line may have other programs' data around it: a byte order mark, NULs, the line of a container runtime, and the
// headers of syslog and journalctl, in any order. The parser removes them.
//
// A format string is compiled into a list of fields, each with the literal text behind it. The parser stops at the last
// field that a record needs. So a format without a duration ends at the status, "common" parses combined lines, and a
// line that is cut off in its user agent is valid. A line that ends between the status and the duration has no
// duration; a line that ends before its status is an error.
//
// Servers log the time of either end of a call. nginx, Caddy and IIS log the time when they write the line. httpd,
// Envoy and Traefik (StartUTC) log the time when the request arrived. [Record].Stamp has the end. The named formats
// common, combined, vhost-combined and combined-usec are read as httpd's, combined-time as nginx's.
//
// Caveats: the server's escapes (\", \x22) in the target and in JSON strings are undone. JSON is scanned, not
// validated. A field before the status ends where its separator and a status follow, so that raw quotes and spaces in a
// request do no harm. A list of nginx, such as $upstream_addr, ends at its first separator that is not part of the
// list. Any other field ends at its first separator that is not an escaped quote. Clocks of servers have no leap
// seconds, and a line of such a second, :60, is an error.
package accesslog

import (
	"bytes"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Format describes the lines of a log. It is immutable and safe for concurrent use.
//
// A text format is a list of steps, one for each field. A parser executes the steps up to the last one that a record
// needs. A JSON format has keys instead of steps.
type Format struct {
	name     string
	json     bool
	keys     *keySet       // of JSON
	unit     time.Duration // of JSON's durations whose key does not determine it
	prefix   []byte        // literal text before the first field
	noPrefix error
	steps    []step
	needed   int   // the number of steps that a record needs
	required int   // a line may end behind this step
	stamp    Stamp // of all lines; in JSON the key determines it
	escaped  bool  // a backslash before a quote makes the quote part of the field
	dated    bool  // lines begin with a date, which is not the header of a wrapping
	piped    bool  // lines begin with a field and a |, which are not the name that docker compose writes
	w3c      bool  // a directive in the log determines the fields
}

// String returns the name of a named format, otherwise the format string.
func (f *Format) String() string { return f.name }

// HasDuration reports whether lines have a duration. JSON lines may have one.
func (f *Format) HasDuration() bool {
	return f.json || slices.ContainsFunc(f.steps, func(s step) bool { return s.slot == duration })
}

// A Parser parses lines of one format. Only one goroutine may use it. It keeps the last time, because the next line
// most likely has the same one, and the parts of lines that a container runtime has split. The parser of a W3C log also
// keeps the fields that the last directive has named.
type Parser struct {
	format *Format
	clock  clock
	line   []byte    // the last line, without its wrappings
	buf    []byte    // unescaped strings
	parts  [2][]byte // of split lines, in stdout and stderr
	strict bool      // skipped fields must have their syntax, and no field may be missing
}

// NewParser returns a parser. Times without a zone are in zone. A nil zone is UTC, so that a log means the same on
// every machine.
func (f *Format) NewParser(zone *time.Location) *Parser {
	if zone == nil {
		zone = time.UTC
	}
	return &Parser{format: f, clock: clock{zone: zone}}
}

// Ambiguous returns the number of lines in an hour that occurs twice when clocks are set back. Such a line counts in
// the hour that is nearer to the line before, or in the first one.
func (p *Parser) Ambiguous() int64 { return p.clock.ambiguous }

// Parse parses a line, with or without its line feed, and overwrites r. If it returns an error, r is invalid. The error
// names the field that did not match and its syntax; [Parser.Kind] returns the kind of such a line. All errors are made
// beforehand, and Parse does not allocate, except for invalid times, durations such as 1m2.5s, and #Fields directives.
func (p *Parser) Parse(line []byte, r *Record) error {
	p.buf = p.buf[:0]
	// Lines of all formats may be wrapped.
	line, whole := p.unwrap(trimEnd(line))
	if !whole {
		return ErrPartial
	}
	p.line = line
	*r = Record{Stamp: p.format.stamp}
	if len(line) == 0 {
		return errEmpty
	}
	if line[0] == '#' && !bytes.HasPrefix(p.format.prefix, []byte("#")) {
		p.directive(line)
		return errDirective
	}
	_, err := p.read(line, r)
	if err != nil && p.format.json && p.readEnveloped(line, r) {
		return nil
	}
	return err
}

// readEnveloped reads the line of a JSON format in the object of a log shipper, which may be in another such object.
func (p *Parser) readEnveloped(line []byte, r *Record) bool {
	for range maxWrappings {
		text, ok := p.envelope(line)
		if !ok {
			break
		}
		if line, ok = p.unwrap(text); !ok || len(line) == 0 {
			break
		}
		*r = Record{}
		if _, err := p.read(line, r); err == nil {
			return true
		}
	}
	return false
}

// read reads a line that is not empty. It returns the rest behind the fields of a text format.
func (p *Parser) read(line []byte, r *Record) (rest []byte, err error) {
	if p.format.json {
		return nil, p.object(line, r)
	}
	return p.fields(line, r)
}

// trimEnd removes LF or CR LF at the end of a line.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// Stamp is the end of a call whose time is in its line. It determines the second in which the call counts. The lines of
// a server that logs the start of calls are out of order by up to the duration of a call, because it writes a line at
// the end of the call.
type Stamp uint8

// The two ends of a call.
const (
	Start Stamp = iota // when the request arrived
	End                // when the line was written
)

// A Record is a call, as its line describes it. Its slices point into the line or into the [Parser]. They are valid
// until the next Parse, and as long as the line is.
type Record struct {
	Time        time.Time     // in UTC
	Stamp       Stamp         // the end of the call whose time is Time
	Coarse      bool          // Time has no fraction of a second
	Duration    time.Duration // never negative; 0 if a clock was set back
	HasDuration bool
	Status      int // 0 to 999; 0 if the server had none to log ("-", or nginx's 000)
	HasGRPC     bool
	GRPC        uint32 // gRPC status of the call, if HasGRPC

	// Method and Target are from the request line. The target is percent-encoded if the client sent it so. Both are
	// empty if the request of the line does not have the three parts method, target and HTTP/version.
	Method, Target []byte

	// Host and Client are empty if the line has none. Client has no port and no brackets. It is empty for the clients
	// of a Unix socket.
	Host, Client []byte
}

// splitRequest returns the method and the target of a request line, or nil if the line does not have three parts.
// Spaces within the target, which some clients send, are part of it.
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

// isMethod reports whether b is a token, which is the syntax of methods and of header names.
func isMethod(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return len(b) > 0
}
