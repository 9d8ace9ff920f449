package accesslog

import (
	"bytes"
	"regexp"
	"strings"
)

// What stands behind the user agent of combined lines: words, some of them with a key, quoted or in brackets.
var (
	combinedLine = regexp.MustCompile(`(?s)^` + begin + agents)
	word         = regexp.MustCompile(`^ ([A-Za-z_]+[=:])?("(?:[^"\\]|\\.)*"|\[[^]]*\]|[^ "\[]+)`)
	fractional   = regexp.MustCompile(`^"?\d+\.\d{3}"?$`)
	ofRequest    = regexp.MustCompile(`^(?i:rt|request_?time|req_time|duration|time|took|response_time|rtime)[=:]$`)
)

// extended returns the format string of a combined line with nginx's $request_time behind it: the word with such a key, or else
// the first number with three decimals, unless a later one is longer, as no part of a request is. It is empty if there is none.
func extended(line []byte) string {
	end := combinedLine.FindIndex(line)
	if end == nil {
		return ""
	}
	format, found := strings.Builder{}, ""
	longest := ""
	for rest := line[end[1]:]; ; {
		m := word.FindSubmatch(rest)
		if m == nil {
			break
		}
		key, value := string(m[1]), string(m[2])
		open, closing := "", ""
		if i := strings.IndexByte(`"[`, value[0]); i >= 0 {
			open, closing = value[:1], `"]`[i:i+1]
		}
		number, behind := strings.Trim(value, `"`), ""
		if rest = rest[len(m[0]):]; len(rest) > 0 {
			behind = " $rest"
		}
		if fractional.MatchString(value) {
			if ofRequest.MatchString(key) {
				return format.String() + " " + key + open + "$request_time" + closing + behind
			}
			if key == "" && found == "" {
				found, longest = format.String()+" "+open+"$request_time"+closing+behind, number
			} else if key == "" && (len(number) > len(longest) || len(number) == len(longest) && number > longest) {
				return ""
			}
		}
		format.WriteString(" " + key + open + "$skipped" + closing)
	}
	return found
}

// Unread returns what stands behind a line that a format without durations reads.
func (f *Format) Unread(line []byte) []byte {
	shape := shapes[f.name]
	if shape == nil || f.duration {
		return nil
	}
	line = f.NewParser(nil).unwrap(trimEnd(line))
	end := shape.FindIndex(line)
	if end == nil {
		return nil
	}
	return bytes.TrimSpace(line[end[1]:])
}
