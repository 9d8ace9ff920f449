package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Detect guesses the named format of some lines: the format of more than half of the lines that could be calls. The
// format of a line is the first of those that leave the least of it unread. Detect ignores lines of other kinds
// ([Kind]), and joins lines that a container runtime has split. A #Fields directive determines the fields of the W3C
// format. Lines of combined with a whole number after it are an error, because the number may be microseconds, seconds
// or bytes.
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

// A detector counts lines by format.
type detector struct {
	// A date at the beginning of a line is the header of a wrapping, unless it belongs to the format. So each line is
	// unwrapped twice.
	plain, dated *Parser
	parsers      []*Parser
	w3c          *Format // of the last #Fields directive
	votes        map[string]int
	lines        int    // that could be calls
	unknown      []byte // the first line that is not of a format
}

func newDetector() (*detector, error) {
	d := &detector{votes: map[string]int{}, plain: unwrapper(false), dated: unwrapper(true)}
	for _, n := range presets {
		if n.unit != 0 && n.name != "json" || n.name == "w3c" {
			continue // lines do not show the unit, and need a directive
		}
		f, err := Named(n.name)
		if err != nil {
			return nil, err
		}
		d.parsers = append(d.parsers, strictParser(f))
	}
	return d, nil
}

// unwrapper returns a parser that only unwraps lines. It leaves JSON lines alone, as those of a JSON format.
func unwrapper(dated bool) *Parser { return (&Format{json: true, dated: dated}).NewParser(nil) }

func strictParser(f *Format) *Parser {
	p := f.NewParser(nil)
	p.strict = true
	return p
}

// add counts a line. A line that is not of a format counts only if it could be a call.
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
		// JSON in an unknown format may contain a line.
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

// fields makes the parser of the lines after a #Fields directive. It replaces the parser of the previous directive.
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

// result returns the format of most lines, or an error if no format has most of them.
func (d *detector) result() (*Format, error) {
	if d.lines == 0 && d.unknown == nil {
		return nil, errors.New("there are no lines to tell the log format by; " + advice)
	}
	// A format of less than half of the lines could be an accident. Then the user must give the format.
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
		return nil, fmt.Errorf(
			"the log format cannot be told from the lines, such as %.*q; %s",
			most,
			d.unknown,
			advice,
		)
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

// guess returns the name of a line's format. If a combined line has a duration after it, guess appends the format
// string of that part. It returns "" if no format matches. The line is given in two forms, the second one for formats
// that begin with a date.
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

// A list of nginx has several numbers, dashes, addresses or sockets.
const (
	element = `(?:[0-9-][^ ",=\[]*|\[[0-9a-f:.]+\]:\d+|unix:[^ ",]*)`
	list    = element + `(?:(?:, | : )` + element + `)+`
)

// The words after the user agent of combined lines. Some have a key, quotes or brackets. A word may be a list of nginx.
var (
	word = regexp.MustCompile(
		`^ ([A-Za-z_]+[=:])?(` + list + `|"(?:[^"\\]|\\.)*"|\[[^]]*\]|[^ "\[]*[^ "\[,]|,)(,?)`,
	)
	beginsElement = regexp.MustCompile(`^` + element)
	fractional    = regexp.MustCompile(`^"?\d+\.\d{3}"?$`)
	ofRequest     = regexp.MustCompile(`^(?i:rt|request_?time|req_time|duration|time|took|response_time|rtime)[=:]$`)
)

// extended returns the format string of the text after a combined line, with nginx's $request_time: the word with a key
// for it, or else the first number with three decimals, unless a later number is greater, which the time of a part of a
// request cannot be. It returns "" if there is no such word. A list is not a $request_time.
func extended(behind []byte) string {
	format, found := strings.Builder{}, ""
	longest := ""
	for rest := behind; ; {
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
			skipped = "$upstream_skipped" // it may be a list in another line
		}
		// The time of a request is the sum of the times of its parts, so no number after it may be greater.
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

// Unread returns the rest of a line that a format without durations does not read.
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
