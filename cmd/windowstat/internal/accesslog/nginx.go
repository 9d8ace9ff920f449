package accesslog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// nginxVariables are the variables that a record needs. All others are skipped.
var nginxVariables = map[string]variable{
	"remote_addr":        {slot: client, rank: 2},
	"realip_remote_addr": {slot: client, rank: 1},
	"host":               {slot: host, rank: 3},
	"http_host":          {slot: host, rank: 2},
	"server_name":        {slot: host, rank: 1},
	"request":            {slot: request},
	"request_method":     {slot: method},
	"request_uri":        {slot: target, rank: 3},
	"uri":                {slot: target, rank: 2},
	"document_uri":       {slot: target, rank: 1},
	"is_args":            {slot: tail},
	"args":               {slot: tail},
	"query_string":       {slot: tail},
	"status":             {slot: status},
	"request_time":       {slot: duration, unit: seconds},
	"time_local":         {slot: timestamp, pattern: commonTime, stamp: End},
	"time_iso8601":       {slot: timestamp, pattern: "%FT%T%z", stamp: End},
	"msec":               {slot: timestamp, unit: seconds, stamp: End, rank: 1},
}

// Nginx returns the format of an nginx log_format string, such as
//
//	$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time
//
// or of the whole directive, from log_format to the semicolon, with its quotes and line breaks. The parameter
// escape=json or escape=none counts before a string, too. The format needs $status, one of $msec, $time_iso8601 and
// $time_local, and literal text between the variables; unknown variables are skipped. The error joins all problems.
func Nginx(format string) (*Format, error) {
	text, escape, err := nginxDirective(format)
	if err != nil {
		return nil, err
	}
	return compile(text, '$', escape == "json", nginxVariable)
}

// nginxName is the name of a variable, perhaps in braces.
var nginxName = regexp.MustCompile(`^\$(?:(\w+)|\{(\w+)\})`)

// nginxVariable reads the variable that a text begins with.
func nginxVariable(rest string, column int) (variable, error) {
	m := nginxName.FindStringSubmatch(rest)
	if m == nil {
		return variable{name: rest[:1], slot: nothing}, fmt.Errorf("a $ has no name of a variable behind it, at column %d", column)
	}
	v := nginxVariables[m[1]+m[2]]
	v.name = m[0]
	return v, nil
}

// nginxHead is what stands before the strings of a log_format directive, or of a part of one.
var nginxHead = regexp.MustCompile(`^(log_format\s+\S+\s*)?(?:escape=(\S*)\s*)?`)

// nginxDirective extracts the format and the escaping from a directive, or from a part of one.
func nginxDirective(s string) (text, escape string, err error) {
	s = strings.TrimSpace(s)
	m := nginxHead.FindStringSubmatch(s)
	s, escape = s[len(m[0]):], m[2]
	if strings.Contains(m[0], "escape=") && escape != "default" && escape != "json" && escape != "none" {
		return "", "", fmt.Errorf("the log format has escape=%s; nginx has default, json and none", escape)
	}
	// A format alone has no quotes around it.
	if m[1] == "" && (s == "" || s[0] != '\'') {
		return s, escape, nil
	}
	text, err = unquote(strings.TrimSuffix(s, ";"))
	return text, escape, err
}

// unquote joins the quoted strings of a directive.
func unquote(s string) (joined string, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] != '\'' && s[0] != '"' {
			return "", fmt.Errorf("the log format has text outside of its quotes, at %q", s)
		}
		text, rest, closed := unescape(s[1:], s[0])
		if !closed {
			return "", errors.New("the log format has a quote that is not closed")
		}
		joined, s = joined+text, rest
	}
	return joined, nil
}

// isSpace reports whether a byte is white space, as JSON has it.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
