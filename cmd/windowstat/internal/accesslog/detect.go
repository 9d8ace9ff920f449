package accesslog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Detect guesses the named format of some lines: the one that more than half of them have, to their ends. It ignores empty
// lines. Lines that end in a whole number behind combined are an error: it may be microseconds, seconds or bytes.
func Detect(sample [][]byte) (*Format, error) {
	bare := (&Format{syslog: true}).NewParser(nil)
	votes := make(map[string]int)
	lines := 0
	var strange []byte // the first line of no format
	for _, line := range sample {
		if line = trimEnd(line); len(line) == 0 {
			continue
		}
		lines++
		line = bare.unwrap(line)
		name := guess(line)
		if x := extended(line); name == "combined" && x != "" {
			name += x
		}
		if name == "" && strange == nil {
			strange = line
		}
		votes[name]++
	}
	if lines == 0 {
		return nil, errors.New("there are no lines to tell the log format by; " + advice)
	}
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
	if winner == "combined-usec" {
		return nil, errors.New("the lines end in a whole number, and may be combined-usec (microseconds, %D), " +
			"or of a format with seconds (%T) or bytes there; " + advice)
	}
	if tail, ok := strings.CutPrefix(winner, "combined "); ok {
		return Nginx(combinedNginx + " " + tail)
	}
	return Named(winner)
}

const combinedNginx = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

var advice = "give the format: " + strings.Join(Names(), ", ") + ", or the format string of nginx or Apache httpd"

// The shapes of lines of the named text formats, to their ends. Traefik does not escape quotes in its fields.
var (
	begin  = `\S+ \S+ .+ \[[^]]+\] "(?:[^"\\]|\\.)*" (?:\d{3}|-) (?:\d+|-)`
	agents = ` "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"`
	shapes = map[string]*regexp.Regexp{
		"ingress-nginx":  regexp.MustCompile(`(?s)^` + begin + agents + ` \d+ \d+\.\d+ \[[^]]*\] \[[^]]*\] `),
		"haproxy":        regexp.MustCompile(`(?s)^\S+:\d+ \[\d+/\w+/\d+:[\d:]+\.\d{3}\] \S+ \S+/\S+ [-\d]+/[-\d]+/[-\d]+/[-\d]+/[-+\d]+ -?\d+ `),
		"istio":          regexp.MustCompile(`(?s)^\[[-\d]+T[^]]+\] ".*" \d+ \S+ \S+ \S+ ".*" \d+ \d+ \d+ \S+ "`),
		"envoy":          regexp.MustCompile(`(?s)^\[[-\d]+T[^]]+\] ".*" \d+ \S+ \d+ \d+ \d+ \S+ "`),
		"alb":            regexp.MustCompile(`(?s)^\w+ [-\d]+T\S+ \S+ \S+:\d+ \S+ -?[\d.]+ -?[\d.]+ -?[\d.]+ (?:\d{3}|-) (?:\d{3}|-) `),
		"traefik":        regexp.MustCompile(`(?s)^\S+ - .+ \[[^]]+\] ".*" (?:\d{3}|-) (?:\d+|-) ".*" ".*" \d+ ".*" ".*" \d+ms$`),
		"vhost-combined": regexp.MustCompile(`(?s)^\S+:\d+ ` + begin + agents),
		"combined-time":  regexp.MustCompile(`(?s)^` + begin + agents + ` (?:\d+\.\d+|-)$`),
		"combined-usec":  regexp.MustCompile(`(?s)^` + begin + agents + ` \d+$`),
		"combined":       regexp.MustCompile(`(?s)^` + begin + agents),
		"common":         regexp.MustCompile(`(?s)^` + begin),
	}
)

// guess returns the name of the first format that a line matches; "" if none.
func guess(line []byte) string {
	var r Record
	for _, name := range Names() {
		shape, text := shapes[name]
		if text && !shape.Match(line) {
			continue
		}
		if f, err := Named(name); err == nil && f.NewParser(nil).Parse(line, &r) == nil {
			return name
		}
	}
	return ""
}
