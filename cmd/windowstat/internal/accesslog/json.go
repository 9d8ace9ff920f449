package accesslog

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// The errors of JSON lines. The lists show the most usual keys; serverKeys has all of them.
var (
	errObject = errors.New("not a whole JSON object")
	errNoTime = errors.New(
		"no time (ts, StartUTC, time_iso8601, time_local, msec, @timestamp, timestamp, time, start_time)",
	)
	errNoCall   = errors.New("not a line of Caddy's access log")
	errNoStatus = errors.New("no status (status, DownstreamStatus, status_code, response_code)")
	errJSONTime = errors.New(
		"the time is not in seconds since 1970, like 2015-05-17T10:05:03Z, or like 17/May/2015:10:05:03 +0000",
	)
	errJSONStatus   = errors.New("the status is not of up to three digits")
	errJSONDuration = errors.New("the duration is not a number")
)

// A value is the value of a key. raw has no quotes, but still has its escapes: most values are never needed, so the
// parser removes escapes only from the others.
type value struct {
	key    *meaning // nil if the slot has no value
	raw    []byte
	quoted bool
}

// rank returns the rank of the value's key; 0 if there is no value.
func (v *value) rank() int8 {
	if v.key == nil {
		return 0
	}
	return v.key.rank
}

// unit returns the unit that the value's key determines.
func (v *value) unit() time.Duration {
	if v.key == nil {
		return unknown
	}
	return v.key.unit
}

// object parses a line that is a JSON object, with or without the fields of Caddy's console encoder before it.
func (p *Parser) object(line []byte, r *Record) error {
	var best [slots]value
	fields, ok := collectLine(line, p.format.keys, &best)
	if !ok {
		return errObject
	}
	if isOther(&best, fields) {
		return errNoCall
	}
	if best[timestamp].rank() == 0 {
		return errNoTime
	}
	r.Stamp = best[timestamp].key.stamp
	if !p.readTime(p.plain(&best[timestamp])) {
		return errJSONTime
	}
	r.Time, r.Coarse = p.clock.at, p.clock.coarse
	if best[status].rank() == 0 {
		return errNoStatus
	}
	if r.Status = smallNumber(p.plain(&best[status])); r.Status < 0 {
		return errJSONStatus
	}
	if best[duration].rank() > 0 {
		if r.Duration, r.HasDuration, ok = parseDuration(p.plain(&best[duration]), p.durationUnit(&best)); !ok {
			return errJSONDuration
		}
	}
	if best[grpcCode].rank() > 0 {
		r.GRPC, r.HasGRPC = grpcStatus(p.plain(&best[grpcCode]))
	}
	r.Host = p.plain(&best[host])
	if c := p.plain(&best[client]); len(c) > 0 {
		r.Client = clientAddress(c, false)
	}
	p.request(&best, r)
	return nil
}

// collectLine stores the values of a line's object in best, by slot. It returns the fields that Caddy's console encoder
// writes before the object. It returns false if the line has no object, or if any text follows the object, because no
// server writes two objects into a line.
func collectLine(line []byte, keys *keySet, best *[slots]value) (fields []byte, ok bool) {
	object, ok := jsonPart(line)
	if !ok {
		return nil, false
	}
	fields = line[:len(line)-len(object)]
	if len(fields) > 0 { // the first field is the time
		best[timestamp] = value{key: consoleTime, raw: fields[:bytes.IndexByte(fields, '\t')]}
	}
	n := collect(object, keys, best)
	return fields, n > 0 && len(bytes.TrimLeft(object[n:], " \t")) == 0
}

// isOther reports whether a line is from a logger of Caddy that does not write access logs. Caddy also logs errors of
// handlers and round trips to an upstream with the request and a status. In a log that all loggers share, such a call
// would count several times. The console encoder writes the name of the logger into fields.
func isOther(best *[slots]value, fields []byte) bool {
	const http, access = "http.", "http.log.access"
	name := best[logger].raw
	if len(fields) > 0 {
		i := bytes.Index(fields, []byte("\t"+http))
		if i < 0 {
			return false
		}
		name = fields[i+1:]
	}
	return len(name) > len(http) && string(name[:len(http)]) == http && !bytes.HasPrefix(name, []byte(access))
}

// consoleTime is the meaning of the time that the console encoder writes before an object. The object itself has no
// time.
var consoleTime = &meaning{slot: timestamp, rank: 1, stamp: End}

// jsonPart returns the JSON object of a line. Caddy's console encoder writes fields before the object, separated by
// tabs: time, level, logger and message. jsonPart returns false if the line neither begins with an object nor has one
// after such fields.
func jsonPart(line []byte) (object []byte, ok bool) {
	if i := space(line, 0); i < len(line) && line[i] == '{' {
		return line, true
	}
	if len(line) == 0 || !isDigit(line[0]) {
		return nil, false
	}
	i := bytes.Index(line, []byte("\t{"))
	if i < 0 {
		return nil, false
	}
	return line[i+1:], true
}

// durationUnit returns the unit of a duration that is a number. Most keys determine the unit. The key "duration" does
// not: Envoy writes milliseconds, and its lines are recognized by the keys of their time and status. In all other lines
// the format determines the unit.
func (p *Parser) durationUnit(best *[slots]value) time.Duration {
	switch unit := best[duration].unit(); {
	case unit != unknown:
		return unit
	case p.format.unit == seconds && isEnvoy(best):
		return milliseconds
	}
	return p.format.unit
}

// isEnvoy reports whether time and status have the keys of Envoy's default format.
func isEnvoy(best *[slots]value) bool {
	return best[timestamp].unit() == milliseconds && best[status].unit() == milliseconds
}

// isCaddy reports whether the target or the method is in Caddy's object of the request.
func isCaddy(best *[slots]value) bool {
	return best[target].rank() == caddys || best[method].rank() == caddys
}

// UnitUnknown reports whether a line of JSON has a duration in an unknown unit. This is a number under "duration",
// unless Caddy or Envoy wrote the line.
func (f *Format) UnitUnknown(line []byte) bool {
	var best [slots]value
	if !f.json {
		return false
	}
	line, _ = f.NewParser(nil).unwrap(trimEnd(line))
	if _, ok := collectLine(line, f.keys, &best); !ok || isCaddy(&best) || isEnvoy(&best) {
		return false
	}
	d := best[duration]
	_, number := decimal(d.raw, seconds)
	return number && d.unit() == unknown
}

// request sets the method and the target. A request line has both, and wins over separate keys.
func (p *Parser) request(best *[slots]value, r *Record) {
	line := p.plain(&best[request])
	r.Method, r.Target = splitRequest(line)
	// Some logs have the path under the key that others use for the request line.
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

// jsonTimes has the layouts of times that are strings. jsonNumbers has the layouts of times that are numbers, the
// longest unit first.
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

// readTime parses a time in one of the formats of servers. The unit of a number is seconds, unless that would be a time
// after the year 5000. A number of 12 to 14 digits is in milliseconds, one of 15 to 17 digits in microseconds, and a
// longer one in nanoseconds.
func (p *Parser) readTime(b []byte) (ok bool) {
	// A time begins with the digits of a year or a day, and a number with more digits.
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

// smallNumber parses up to three digits. It returns a negative number for anything else.
func smallNumber(b []byte) int {
	if len(b) == 0 || len(b) > 3 || leadingDigits(b) != len(b) {
		return -1
	}
	n, _ := strconv.Atoi(string(b))
	return n
}

// collect scans an object in one pass and does not allocate. A value is a slice of the line, and only the values that a
// record needs are parsed later. Therefore collect accepts some lines that are not JSON and that encoding/json refuses,
// such as nginx's with \x22 in a string.
//
// collect stores the best value of each slot in best, and returns the length of the object. It returns 0 if the object
// has no end. It scans a nested object only if the keys have a meaning for values in it.
func collect(b []byte, keys *keySet, best *[slots]value) int {
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
		m := keys.find(b[i+1 : end])
		if i = space(b, end+1); i == len(b) || b[i] != ':' {
			return 0
		}
		i = space(b, i+1)
		if end = valueEnd(b, i); end == 0 || m != nil && !m.keep(b[i:end], best) {
			return 0
		}
		if i = space(b, end); i == len(b) {
			return 0
		}
		// nginx writes a list of several upstream servers without quotes, which is not JSON.
		if b[i] == ':' || b[i] == ',' && b[end-1] != '"' {
			if i = listEnd(b, i); i == len(b) {
				return 0
			}
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

// listEnd returns the index after a list of nginx that continues with the separator at b[i]: "urt":0.004, 0.012 :
// 0.016,"rt":… It returns i if the separator is not within a list, because the next key follows, as in valid JSON.
func listEnd(b []byte, i int) int {
	for i < len(b) && (b[i] == ',' || b[i] == ':') {
		from := space(b, i+1)
		if from == len(b) || b[from] == '"' || b[from] == '{' {
			return i
		}
		end := valueEnd(b, from)
		if end <= from {
			return i
		}
		i = space(b, end)
	}
	return i
}

// keep stores a value in best if its key has a higher rank than the key of the stored one. It returns false only for an
// object that has no end and whose values have a meaning.
func (m *meaning) keep(raw []byte, best *[slots]value) bool {
	v := value{key: m, raw: raw}
	switch {
	case len(raw) == 0:
		return true
	case raw[0] == '{':
		return m.inside == nil || collect(raw, m.inside, best) > 0
	case m.rank <= best[m.slot].rank() || raw[0] == '[' || string(raw) == "null":
		return true
	case raw[0] == '"':
		v.raw, v.quoted = raw[1:len(raw)-1], true
	}
	if present(v.raw) != nil {
		best[m.slot] = v
	}
	return true
}

// valueEnd returns the index after the value that begins at b[i]; 0 if the value has no end.
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
			if depth == 0 { // the end of the object whose last value is a number
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

// quoted returns the index of the quote that ends the string at b[i]; a negative number if the string has no end.
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

// space returns the index of the first byte from i on that is not white space in JSON.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
