// Package accesslog parses the lines of access logs: time, duration, request, client and status of each call.
//
// A [Format] describes the lines of a log. [Named] returns one of the usual formats, [Nginx] and [Apache] compile the
// format string of a server, and [Detect] finds the format of some lines. Each goroutine needs its own [Parser]:
//
//	f, err := accesslog.Named("combined")
//	p := f.NewParser(nil)
//	var r accesslog.Record
//	for lines.Scan() {
//		if err := p.Parse(lines.Bytes(), &r); err == nil {
//			count(&r)
//		} else if p.Kind() == accesslog.Call {
//			malformed++ // lines of other kinds are messages of the server, for example
//		}
//	}
//
// A parser makes its errors once, so a malformed line costs no more than a valid one.
//
// A line may have other programs' data around it: a byte order mark, NULs, the line of a container runtime, and the
// headers of syslog and journalctl, in any order. The parser removes this data.
//
// A format string is compiled into a list of fields, each with the literal text after it. The parser stops at the last
// field that a record needs. So a format without a duration ends at the status, "common" parses combined lines, and a
// line that is cut off in its user agent is valid. A line that ends between the status and the duration has no
// duration; a line that ends before its status is an error.
//
// Servers log the time of either end of a call. nginx, Caddy and IIS log the time when they write the line. httpd,
// Envoy and Traefik (StartUTC) log the time when the request arrived. [Record].Stamp has the end. The named formats
// common, combined, vhost-combined and combined-usec have the time of httpd, and combined-time has the time of nginx.
//
// Caveats:
//   - The parser removes the server's escapes (\", \x22) from the target and from JSON strings.
//   - The parser scans JSON, and does not validate it.
//   - A field before the status ends at the first separator with a status after it. Raw quotes and spaces in a request
//     therefore do no harm.
//   - A list of nginx, such as $upstream_addr, ends at the first separator that is not part of the list.
//   - Any other field ends at the first separator that is not an escaped quote.
//   - Clocks of servers have no leap seconds. A line of such a second, :60, is an error.
package accesslog

import (
	"bytes"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Format describes the lines of a log. It is immutable and safe for concurrent use.
//
// A text format is a list of steps, one for each field. A parser executes the steps up to the last field that a record
// needs. A JSON format has keys instead of steps.
type Format struct {
	name     string
	json     bool
	keys     *keySet       // of JSON
	unit     time.Duration // of JSON's durations whose key does not determine it
	prefix   []byte        // literal text before the first field
	noPrefix error         // for a line without the prefix
	steps    []step
	needed   int   // the number of steps up to the last field that a record needs
	required int   // index of the last step that a line must have; it may end after this step
	stamp    Stamp // of all lines; in JSON the key determines it
	escaped  bool  // the server writes a backslash before a quote within a field
	dated    bool  // lines begin with a date themselves, so a date is not the header of a wrapping
	piped    bool  // lines begin with a field and a | themselves, so these are not the prefix of docker compose
	w3c      bool  // the last #Fields directive determines the fields
}

// String returns the name of a named format, and the format string of any other format.
func (f *Format) String() string { return f.name }

// HasDuration reports whether lines have a duration. JSON lines may have one.
func (f *Format) HasDuration() bool {
	return f.json || slices.ContainsFunc(f.steps, func(s step) bool { return s.slot == duration })
}

// A Parser parses lines of one format. It is not safe for concurrent use.
//
// A parser keeps the last time, because the next line most likely has the same one, and the parts of lines that a
// container runtime has split. The parser of a W3C log also keeps the fields that the last directive has named.
type Parser struct {
	format *Format
	clock  clock
	line   []byte    // the last line, without its wrappings
	buf    []byte    // unescaped strings of the last record
	parts  [2][]byte // of lines that a runtime has split, by stream: stdout and stderr
	strict bool      // for detection: skipped fields must have their syntax, and no field may be missing
}

// NewParser returns a parser. Times without a zone are in zone. A nil zone means UTC, so that a log is read in the same
// way on every machine.
func (f *Format) NewParser(zone *time.Location) *Parser {
	if zone == nil {
		zone = time.UTC
	}
	return &Parser{format: f, clock: clock{zone: zone}}
}

// Ambiguous returns the number of lines with a local time in the hour that occurs twice when clocks are set back. The
// parser takes the one of the two times that is nearer to the line before. If there is no line before, it takes the
// first one.
func (p *Parser) Ambiguous() int64 { return p.clock.ambiguous }

// Parse parses a line, with or without its line feed, and overwrites r. If it returns an error, r is invalid. The error
// names the field that did not match and its syntax; [Parser.Kind] returns the kind of such a line. For a part of a
// split line, Parse returns [ErrPartial] until the last part arrives.
//
// Parse does not allocate, except for invalid times, durations such as 1m2.5s, and #Fields directives.
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

// readEnveloped reads the line of a JSON format from the object of a log shipper. Such an object may be in another one.
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

// read reads a line that is not empty. For a text format, it returns the text after the fields that it has read.
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

// Stamp says whether the time in a line is the start or the end of the call. It determines the second in which the call
// counts. A server writes a line at the end of a call; if it logs the start, its lines are out of order by up to the
// duration of a call.
type Stamp uint8

// The two ends of a call.
const (
	Start Stamp = iota // when the request arrived
	End                // when the line was written
)

// A Record is a call, as its line describes it. Its slices point into the line or into the [Parser], and are valid
// until the next Parse or until the caller changes the line.
type Record struct {
	Time        time.Time     // in UTC
	Stamp       Stamp         // the end of the call whose time is Time
	Coarse      bool          // Time has no fraction of a second
	Duration    time.Duration // never negative; 0 if a clock was set back
	HasDuration bool
	Status      int // 0 to 999; 0 if the server had none to log ("-", or nginx's 000)
	HasGRPC     bool
	GRPC        uint32 // gRPC status of the call, if HasGRPC

	// Method and Target are from the request line. The target is percent-encoded if the client sent it so. Both are nil
	// if the request line does not have the three parts method, target and HTTP/version.
	Method, Target []byte

	// Host and Client are nil if the line does not have them. Client has no port and no brackets. It is nil for the
	// clients of a Unix socket, too.
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

// isMethod reports whether b is a token in the syntax of HTTP. Methods and names of headers are tokens.
func isMethod(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return len(b) > 0
}
