package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Detect returns the named format of a sample of lines: the format of more than half of the lines that could be calls.
// The format of a line is the preset that reads most of it; the first of them, if several read equally much.
//
// Detect ignores lines of other kinds (see [Kind]), and joins lines that a container runtime has split. A #Fields
// directive determines the fields of the W3C format. If the lines are those of the format combined with a whole number
// after it, Detect returns an error: the number may be microseconds, seconds or bytes.
func Detect(sample [][]byte) (*Format, error) {
	d, err := newDetector()
	if err != nil {
		return nil, err
	}
	for _, line := range sample {
		d.add(trimEnd(line))
	}
	return d.result()
}

// A detector counts the lines of a sample by format.
type detector struct {
	// A date at the beginning of a line is the header of a wrapping, unless it belongs to the format. Therefore add
	// unwraps each line twice: plain removes such a date, and dated leaves it.
	plain, dated *Parser
	parsers      []*Parser      // one for each preset, and the last one for w3c if it is not nil
	w3c          *Format        // of the last #Fields directive
	votes        map[string]int // lines by the name of their format; "" for none
	lines        int            // lines that could be calls
	unknown      []byte         // the first line that no format matches, for the error
}

// newDetector returns a detector with parsers for all presets that a line can identify.
func newDetector() (*detector, error) {
	d := &detector{votes: map[string]int{}, plain: unwrapper(false), dated: unwrapper(true)}
	for _, n := range presets {
		if n.unit != 0 && n.name != "json" || n.name == "w3c" {
			continue // a JSON line does not show its unit, and w3c needs a directive
		}
		f, err := Named(n.name)
		if err != nil {
			return nil, err
		}
		d.parsers = append(d.parsers, strictParser(f))
	}
	return d, nil
}

// unwrapper returns a parser that only unwraps lines. It has a JSON format, so unwrap does not remove a JSON object
// that could itself be the call.
func unwrapper(dated bool) *Parser { return (&Format{json: true, dated: dated}).NewParser(nil) }

// strictParser returns a parser that reads every field of a line and checks its syntax. A format is detected only if
// the whole line has it.
func strictParser(f *Format) *Parser {
	p := f.NewParser(nil)
	p.strict = true
	return p
}

// add counts a line for the format that it has. A line without a known format counts only if it could be a call, so
// messages of the server do not prevent a majority.
func (d *detector) add(line []byte) {
	d.plain.buf, d.dated.buf = d.plain.buf[:0], d.dated.buf[:0]
	plain, whole := d.plain.unwrap(line)
	dated, _ := d.dated.unwrap(line)
	if !whole {
		return
	}
	if bytes.HasPrefix(plain, []byte(w3cDirective)) {
		d.fields(plain)
	}
	name := ""
	for range maxWrappings {
		if len(plain) == 0 || plain[0] == '#' {
			break
		}
		if name = guess(d.parsers, plain, dated); name != "" {
			break
		}
		// A JSON object without the keys of a server may be the envelope of a log shipper, with the line in it.
		text, ok := d.plain.envelope(plain)
		if !ok {
			break
		}
		plain, _ = d.plain.unwrap(text)
		dated, _ = d.dated.unwrap(text)
	}
	if name == "" {
		if len(line) > 0 && d.unknown == nil && !bytes.HasPrefix(plain, []byte("#")) {
			d.unknown = bytes.Clone(line)
		}
		if kindOf(plain, serverKeys) != Call {
			return
		}
	}
	d.lines++
	d.votes[name]++
}

// fields makes the parser of the lines after a #Fields directive. It replaces the parser of the previous directive,
// which is the last one in the list.
func (d *detector) fields(directive []byte) {
	f, err := w3c(string(directive))
	if err != nil {
		return
	}
	if d.w3c != nil {
		d.parsers = d.parsers[:len(d.parsers)-1]
	}
	d.w3c = f
	d.parsers = append(d.parsers, strictParser(f))
}

// result returns the format of most lines, or an error if no format has more than half of them.
func (d *detector) result() (*Format, error) {
	if d.lines == 0 && d.unknown == nil {
		return nil, errors.New("no lines to detect the log format from; " + advice)
	}
	// A format of fewer lines could match by accident. Then the user must give the format.
	winner := ""
	for name, n := range d.votes {
		if 2*n > d.lines {
			winner = name
		}
	}
	if winner == "" {
		if d.unknown == nil {
			return nil, errors.New("the lines are of several log formats; " + advice)
		}
		const most = 200
		return nil, fmt.Errorf("cannot detect the log format from the lines, such as %.*q; %s", most, d.unknown, advice)
	}
	// A wrong unit would make all durations wrong by a factor of a thousand or a million.
	if winner == "combined-usec" {
		return nil, errors.New("the lines end in a whole number, and may be combined-usec (microseconds, %D), " +
			"or of a format with seconds (%T) or bytes there; " + advice)
	}
	if winner == "w3c" {
		return d.w3c, nil
	}
	if tail, ok := strings.CutPrefix(winner, "combined "); ok {
		return Nginx(combinedNginx + " " + tail)
	}
	return Named(winner)
}

// combinedNginx is nginx's combined format.
const combinedNginx = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" ` +
	`"$http_user_agent"`

// advice ends the errors of formats that are not recognised.
var advice = "give the format: " + strings.Join(Names(), ", ") + ", or the format string of nginx or Apache httpd"

// guess returns the name of a line's format, or "" if no format matches. The caller passes the line without wrappings
// in two forms: plain for most formats, and dated for formats whose lines begin with a date. If a combined line has a
// duration after it, guess appends a space and the format string of the words with the duration.
func guess(parsers []*Parser, plain, dated []byte) (name string) {
	var best []byte
	for _, p := range parsers {
		line := plain
		if p.format.dated {
			line = dated
		}
		if rest, ok := p.match(line); ok && (name == "" || len(rest) < len(best)) {
			name, best = p.format.name, rest
		}
	}
	if name == "combined" {
		name += extended(best)
	}
	return name
}

// list matches a list of nginx with at least two elements: numbers, dashes, addresses or sockets.
const (
	element = `(?:[0-9-][^ ",=\[]*|\[[0-9a-f:.]+\]:\d+|unix:[^ ",]*)`
	list    = element + `(?:(?:, | : )` + element + `)+`
)

// The words after the user agent of combined lines, such as rt=0.120 or "0.120" or [backend]. Some have a key, quotes
// or brackets. A word may be a list of nginx.
var (
	word = regexp.MustCompile(
		`^ ([A-Za-z_]+[=:])?(` + list + `|"(?:[^"\\]|\\.)*"|\[[^]]*\]|[^ "\[]*[^ "\[,]|,)(,?)`,
	)
	beginsElement = regexp.MustCompile(`^` + element)
	fractional    = regexp.MustCompile(`^"?\d+\.\d{3}"?$`)
	// The keys that administrators give to nginx's $request_time.
	ofRequest = regexp.MustCompile(`^(?i:rt|request_?time|req_time|duration|time|took|response_time|rtime)[=:]$`)
)

// extended returns the format string of the text after a combined line, with nginx's $request_time in it:
// rt=$request_time $rest for rt=0.120 uct="0.001". The request time is the word with a key for it, or else the first
// number with three decimals. It returns "" if there is no such word, or if a later number is greater: then the first
// number is the time of a part of the request. A list is not a $request_time.
func extended(tail []byte) string {
	format, found := strings.Builder{}, ""
	longest := ""
	for rest := tail; ; {
		m := word.FindSubmatch(rest)
		if m == nil {
			return found
		}
		key, value, comma := string(m[1]), string(m[2]), string(m[3])
		open, closing := "", ""
		skipped := "$skipped"
		switch i, last := strings.IndexByte(`"[`, value[0]), value[len(value)-1]; {
		case i >= 0 && last == `"]`[i]:
			open, closing = value[:1], value[len(value)-1:]
		case beginsElement.MatchString(value):
			skipped = "$upstream_skipped" // a list in other lines, perhaps
		}
		// No part of a request takes longer than the request, so no later number may be greater. Numbers with three
		// decimals and equal length compare like strings.
		number, more := strings.Trim(value, `"`), ""
		if rest = rest[len(m[0]):]; len(rest) > 0 {
			more = " $rest"
		}
		if fractional.MatchString(value) {
			if ofRequest.MatchString(key) {
				return format.String() + " " + key + open + "$request_time" + closing + comma + more
			}
			if key == "" && found == "" {
				found, longest = format.String()+" "+open+"$request_time"+closing+comma+more, number
			} else if key == "" && (len(number) > len(longest) || len(number) == len(longest) && number > longest) {
				return ""
			}
		}
		format.WriteString(" " + key + open + skipped + closing + comma)
	}
}

// Unread returns the part of a line that follows the fields of a format without durations. The command shows it to the
// user, because it may contain a duration. Unread returns nil if the format has a duration.
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
