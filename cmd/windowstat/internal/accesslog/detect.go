package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Detect guesses the named format of some lines: the one that more than half of them have. A line has the first of the formats of
// which it leaves least unread. Detect ignores empty lines, and joins those that a container's runtime has split. Lines that end in a
// whole number behind combined are an error: it may be microseconds, seconds or bytes.
func Detect(sample [][]byte) (*Format, error) {
	bare := (&Format{syslog: true}).NewParser(nil)
	parsers := make([]*Parser, 0, len(presets))
	for _, n := range presets {
		if n.unit != 0 && n.name != "json" {
			continue // nothing tells these apart
		}
		f, err := Named(n.name)
		if err != nil {
			return nil, err
		}
		p := f.NewParser(nil)
		p.strict = true
		parsers = append(parsers, p)
	}
	votes := make(map[string]int)
	lines := 0
	var strange []byte // the first line of no format
	for _, line := range sample {
		line, whole := bare.unwrap(trimEnd(line))
		if len(line) == 0 || !whole {
			continue
		}
		lines++
		name := guess(parsers, line)
		if name == "" && strange == nil {
			strange = bytes.Clone(line)
		}
		votes[name]++
		bare.buf = bare.buf[:0]
	}
	if lines == 0 {
		return nil, errors.New("there are no lines to tell the log format by; " + advice)
	}
	// A format of less than half of the lines could be an accident: then somebody must say what they are.
	winner := ""
	for name, n := range votes {
		if 2*n > lines {
			winner = name
		}
	}
	if winner == "" {
		if strange == nil {
			return nil, errors.New("the lines are of several log formats; " + advice)
		}
		const most = 200
		return nil, fmt.Errorf("the log format cannot be told from the lines, such as %.*q; %s", most, strange, advice)
	}
	// Guessing the unit wrong would make all durations wrong by a thousand or a million.
	if winner == "combined-usec" {
		return nil, errors.New("the lines end in a whole number, and may be combined-usec (microseconds, %D), " +
			"or of a format with seconds (%T) or bytes there; " + advice)
	}
	if tail, ok := strings.CutPrefix(winner, "combined "); ok {
		return Nginx(combinedNginx + " " + tail)
	}
	return Named(winner)
}

// combinedNginx is nginx's combined format.
const combinedNginx = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

// advice ends the errors of formats that are not recognised.
var advice = "give the format: " + strings.Join(Names(), ", ") + ", or the format string of nginx or Apache httpd"

// guess returns the name of a line's format, with what makes combined one that has durations; "" if it has none.
func guess(parsers []*Parser, line []byte) (name string) {
	var best []byte
	for _, p := range parsers {
		if rest, ok := p.match(line); ok && (name == "" || len(rest) < len(best)) {
			name, best = p.format.name, rest
		}
	}
	if name == "combined" {
		name += extended(best)
	}
	return name
}

// What stands behind the user agent of combined lines: words, some of them with a key, quoted or in brackets.
var (
	word       = regexp.MustCompile(`^ ([A-Za-z_]+[=:])?("(?:[^"\\]|\\.)*"|\[[^]]*\]|[^ "\[]+)`)
	fractional = regexp.MustCompile(`^"?\d+\.\d{3}"?$`)
	ofRequest  = regexp.MustCompile(`^(?i:rt|request_?time|req_time|duration|time|took|response_time|rtime)[=:]$`)
)

// extended returns the format string of nginx's $request_time behind a combined line: of the word with such a key, or else the first
// number with three decimals, unless a later one is longer, as no part of a request is. It is empty if there is none.
func extended(behind []byte) string {
	format, found := strings.Builder{}, ""
	longest := ""
	for rest := behind; ; {
		m := word.FindSubmatch(rest)
		if m == nil {
			return found
		}
		key, value := string(m[1]), string(m[2])
		open, closing := "", ""
		if i := strings.IndexByte(`"[`, value[0]); i >= 0 {
			open, closing = value[:1], `"]`[i:i+1]
		}
		// The time of a request is the sum of those of its parts, so no number behind it may be greater.
		number, more := strings.Trim(value, `"`), ""
		if rest = rest[len(m[0]):]; len(rest) > 0 {
			more = " $rest"
		}
		if fractional.MatchString(value) {
			if ofRequest.MatchString(key) {
				return format.String() + " " + key + open + "$request_time" + closing + more
			}
			if key == "" && found == "" {
				found, longest = format.String()+" "+open+"$request_time"+closing+more, number
			} else if key == "" && (len(number) > len(longest) || len(number) == len(longest) && number > longest) {
				return ""
			}
		}
		format.WriteString(" " + key + open + "$skipped" + closing)
	}
}

// Unread returns what stands behind a line that a format without durations reads.
func (f *Format) Unread(line []byte) []byte {
	if f.HasDuration() {
		return nil
	}
	p := f.NewParser(nil)
	line, _ = p.unwrap(trimEnd(line))
	p.strict = true
	rest, _ := p.match(line)
	return bytes.TrimSpace(rest)
}
