package accesslog

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The errors of JSON lines.
var (
	errObject       = errors.New("not a whole JSON object")
	errNoTime       = errors.New("no time (ts, StartUTC, time_iso8601, time_local, msec, @timestamp, timestamp, time)")
	errNoStatus     = errors.New("no status (status, DownstreamStatus, status_code)")
	errJSONTime     = errors.New("the time is not in seconds since 1970, like 2015-05-17T10:05:03Z, or like 17/May/2015:10:05:03 +0000")
	errJSONStatus   = errors.New("the status is not of up to three digits")
	errJSONDuration = errors.New("the duration is not a number")
)

// A value is the value of a key, without quotes, and with its escapes: most are never needed without them.
type value struct {
	meaning
	raw    []byte
	quoted bool
}

// object parses a line that is a JSON object.
func (p *Parser) object(line []byte, r *Record) error {
	var best [slots]value
	// Nothing may stand behind the object: two in one line are no line of any server.
	if n := collect(line, keys, &best); n == 0 || len(bytes.TrimLeft(line[n:], " \t")) > 0 {
		return errObject
	}
	if best[timestamp].rank == 0 {
		return errNoTime
	}
	r.Stamp = best[timestamp].stamp
	if !p.readTime(p.plain(&best[timestamp])) {
		return errJSONTime
	}
	r.Time, r.Coarse = p.clock.at, p.clock.coarse
	if best[status].rank == 0 {
		return errNoStatus
	}
	if r.Status = smallNumber(p.plain(&best[status])); r.Status < 0 {
		return errJSONStatus
	}
	// Some keys tell the unit, and one does not; then the name of the format does.
	if best[duration].rank > 0 {
		ok, unit := false, best[duration].unit
		if unit == unknown {
			unit = p.format.unit
		}
		if r.Duration, r.HasDuration, ok = parseDuration(p.plain(&best[duration]), unit); !ok {
			return errJSONDuration
		}
	}
	r.Host, r.Client = p.plain(&best[host]), p.plain(&best[client])
	p.request(&best, r)
	return nil
}

// UnitUnknown reports whether a line of JSON has a duration that does not tell its unit: a number under "duration", unless the line
// is Caddy's.
func (f *Format) UnitUnknown(line []byte) bool {
	var best [slots]value
	line, _ = f.NewParser(nil).unwrap(trimEnd(line))
	if !f.json || collect(line, keys, &best) == 0 || best[target].rank == caddys || best[method].rank == caddys {
		return false
	}
	d := best[duration]
	_, number := decimal(d.raw, seconds)
	return number && d.unit == unknown
}

// request sets method and target. A request line has both; a path in its place is a target.
func (p *Parser) request(best *[slots]value, r *Record) {
	line := p.plain(&best[request])
	r.Method, r.Target = splitRequest(line)
	// Some write a path where others write the request line.
	if r.Method == nil && len(line) > 0 && line[0] == '/' {
		r.Target = line
	}
	if m := p.plain(&best[method]); r.Method == nil && isMethod(m) {
		r.Method = m
	}
	if r.Target == nil {
		r.Target = p.plain(&best[target])
	}
}

// jsonTimes are the layouts of times that are strings, and jsonNumbers of those that are numbers, the longest unit first.
var jsonTimes, jsonNumbers = func() (*layout, []*layout) {
	spelled := []string{"02/Jan/2006:15:04:05 -0700"}
	for _, date := range []string{"2006-01-02T", "2006-01-02 ", "2006/01/02T", "2006/01/02 "} {
		for _, zone := range []string{"Z07:00", "", "Z0700", "Z07"} {
			spelled = append(spelled, date+"15:04:05"+zone)
		}
	}
	var numbers []*layout
	for _, unit := range []time.Duration{seconds, milliseconds, microseconds, nanoseconds} {
		numbers = append(numbers, &layout{unit: unit})
	}
	return &layout{spelled: spelled}, numbers
}()

// readTime parses a time in one of the formats of servers. A number is seconds, unless that is beyond the year 5000: then it
// is milliseconds, microseconds or nanoseconds.
func (p *Parser) readTime(b []byte) (ok bool) {
	// The digits that it begins with tell what a time is: those of a year or a day, or of a number.
	l := jsonTimes
	if whole := leadingDigits(b); whole != len("2006") && whole != len("02") {
		l = jsonNumbers[min(max(whole-9, 0)/3, len(jsonNumbers)-1)]
	}
	return p.clock.read(l, b)
}

// plain returns a value without escapes.
func (p *Parser) plain(v *value) []byte {
	if !v.quoted {
		return v.raw
	}
	return p.unescaped(v.raw)
}

// smallNumber parses up to three digits; it is negative for anything else.
func smallNumber(b []byte) int {
	if len(b) == 0 || len(b) > 3 || leadingDigits(b) != len(b) {
		return -1
	}
	n, _ := strconv.Atoi(string(b))
	return n
}

// collect scans an object in one pass and makes nothing: a value is a part of the line, and only what a record needs is looked at again. So
// it accepts some lines that are not JSON, such as nginx's with \x22 in a string, which encoding/json would refuse.
//
// It keeps the best value for each slot, and returns the length of the object; 0 if it has no end. Of nested objects it scans only that in
// which Caddy has the request.
func collect(b []byte, keys map[string]meaning, best *[slots]value) int {
	i := space(b, 0)
	if i == len(b) || b[i] != '{' {
		return 0
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for i < len(b) && b[i] == '"' {
		end := quoted(b, i)
		if end < 0 {
			return 0
		}
		m := keys[string(b[i+1:end])]
		if i = space(b, end+1); i == len(b) || b[i] != ':' {
			return 0
		}
		i = space(b, i+1)
		if end = valueEnd(b, i); end == 0 || !m.keep(b[i:end], best) {
			return 0
		}
		if i = space(b, end); i == len(b) {
			return 0
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = space(b, i+1)
		default:
			return 0
		}
	}
	return 0
}

// keep keeps a value if it is better than what there is. It reports false if the value is a request that is not a whole object.
func (m meaning) keep(raw []byte, best *[slots]value) bool {
	v := value{meaning: m, raw: raw}
	switch {
	case m.rank <= best[m.slot].rank || len(raw) == 0 || raw[0] == '[' || string(raw) == "null":
		return true
	// Caddy's request is an object, nginx's a string: both have the same key.
	case raw[0] == '{':
		return m.slot != request || collect(raw, inRequest, best) > 0
	case raw[0] == '"':
		v.raw, v.quoted = raw[1:len(raw)-1], true
	}
	if present(v.raw) != nil {
		best[m.slot] = v
	}
	return true
}

// valueEnd returns the index behind the value that begins at b[i]; 0 if it has no end.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = quoted(b, i); i < 0 {
				return 0
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of the object in which a number stands
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// quoted returns the index of the quote that ends the string at b[i]; negative if there is none.
func quoted(b []byte, i int) int {
	begin := i + 1
	for at := begin; ; at++ {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		if b[at-1] != '\\' || backslashes(b[begin:at])%2 == 0 {
			return at
		}
	}
}

// space returns the index of the first byte from i on that is not white space, as JSON has it.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// A meaning is what a JSON key means.
type meaning struct {
	slot  slot
	rank  int           // of two keys for the same slot the higher one counts; never 0
	unit  time.Duration // of duration, for numbers
	stamp Stamp         // of timestamp
}

// caddys is a rank above all others: that of the keys in Caddy's object of the request.
const caddys = 10

// keys are those of Traefik, of Caddy, and the usual ones for JSON of nginx; inRequest are those of the object in which Caddy has the
// request.
var keys, inRequest = func() (keys, inRequest map[string]meaning) {
	keys, inRequest = map[string]meaning{}, map[string]meaning{}
	add := func(to map[string]meaning, names string, highest int, m meaning) {
		for i, name := range strings.Fields(names) {
			m.rank = highest - i
			to[name] = m
		}
	}
	// Traefik's time is when it wrote the line; StartUTC is better, because Duration begins there.
	add(keys, "StartUTC StartLocal", 9, meaning{slot: timestamp, stamp: Start})
	add(keys, "msec ts time_iso8601 @timestamp timestamp time_local time", 7, meaning{slot: timestamp, stamp: End})
	add(keys, "Duration", 3, meaning{slot: duration, unit: nanoseconds})
	add(keys, "request_time", 2, meaning{slot: duration, unit: seconds})
	add(keys, "duration", 1, meaning{slot: duration, unit: unknown}) // Caddy's is in seconds
	add(keys, "DownstreamStatus status status_code", 3, meaning{slot: status})
	add(keys, "RequestMethod request_method method", 3, meaning{slot: method})
	add(keys, "request", 1, meaning{slot: request})
	add(keys, "RequestPath request_uri uri path url", 5, meaning{slot: target})
	add(keys, "RequestHost host http_host server_name", 4, meaning{slot: host})
	add(keys, "ClientHost remote_addr client_ip remote_ip", 4, meaning{slot: client})
	add(inRequest, "method", caddys, meaning{slot: method})
	add(inRequest, "uri", caddys, meaning{slot: target})
	add(inRequest, "host", caddys, meaning{slot: host})
	add(inRequest, "client_ip remote_ip", caddys, meaning{slot: client})
	return keys, inRequest
}()
