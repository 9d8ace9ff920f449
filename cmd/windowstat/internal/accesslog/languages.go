package accesslog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// apacheDirectives maps the directives that a record needs, except %t, to their variables. compile skips all others.
// The names of headers are in lower case.
var apacheDirectives = map[string]variable{
	"a":                {slot: client, rank: 3},
	"h":                {slot: client, rank: 2},
	"{c}a":             {slot: client, rank: 1},
	"{c}h":             {slot: client, rank: 1},
	"V":                {slot: host, rank: 2},
	"v":                {slot: host, rank: 1},
	"{host}i":          {slot: host, rank: 3},
	"m":                {slot: method},
	"U":                {slot: target},
	"q":                {slot: tail},
	"r":                {slot: request},
	"s":                {slot: status},
	"{grpc-status}o":   {slot: grpcCode, rank: 1},
	"{grpc-status}^to": {slot: grpcCode, rank: 2},
	"D":                {slot: duration, unit: microseconds, rank: 3, digits: onlyDigits},
	"T":                {slot: duration, unit: seconds, rank: 1},
	"{s}T":             {slot: duration, unit: seconds, rank: 1},
	"{ms}T":            {slot: duration, unit: milliseconds, rank: 2},
	"{us}T":            {slot: duration, unit: microseconds, rank: 3},
	"{+s}T":            {slot: more, unit: seconds}, // httpd does not have this directive
	"b":                {digits: digitsOrDash},
	"B":                {digits: digitsOrDash},
	"I":                {digits: digitsOrDash},
	"O":                {digits: digitsOrDash},
	"k":                {digits: digitsOrDash},
	"p":                {slot: port, digits: digitsOrDash},
	"{remote}p":        {slot: port, digits: digitsOrDash},
	"{local}p":         {slot: port, digits: digitsOrDash},
	"{canonical}p":     {slot: port, digits: digitsOrDash},
	"%":                {slot: nothing, before: "%"},
}

// Apache returns the format of a LogFormat string of httpd, such as
//
//	%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D
//
// with or without the backslashes, or of the whole directive with its quotes. The format needs a status, %>s or %s, and
// a time: %t, or %{…}t with sec, msec, usec, msec_frac, usec_frac or a strftime pattern of %Y %m %b %d %H %M %S %z %s
// %F %T, with or without begin: or end: before it. Several of them may form one time. Directives need literal text
// between them; unknown ones are skipped. The error joins all problems.
func Apache(format string) (*Format, error) {
	return compile(apacheDirective(format), '%', true, apacheVariable)
}

// apacheVariable reads the directive at the beginning of rest. The argument of a directive is compared in lower case,
// because it is the name of a header.
func apacheVariable(rest string, column int) (v variable, err error) {
	m := directive.FindStringSubmatch(rest)
	if m == nil {
		v = variable{name: rest, slot: nothing}
		return v, fmt.Errorf("the directive %q, at column %d, has no end", rest, column)
	}
	name, argument, letter := m[0], m[1], m[2]
	key := letter
	if argument != "" {
		key = "{" + strings.ToLower(argument) + "}" + letter
	}
	v, known := apacheDirectives[key]
	switch {
	case letter == "t":
		v = apacheTime(argument)
	case letter == "T" && !known:
		err = fmt.Errorf("%s, at column %d: there is no unit %q; allowed are s, ms and us", name, column, argument)
	case letter == "s" && !strings.Contains(name, "<") && strings.Contains(name, ">"):
		v.rank = 1 // the status that was sent, after internal redirects
	}
	v.name = name
	return v, err
}

// directive matches a directive of httpd: conditions such as !200 or >, an {argument}, and a letter or one of ^ti, ^to,
// ^FU and ^FB.
var directive = regexp.MustCompile(`^%[!<>,0-9]*(?:\{([^}]*)\}[<>]*)?(\^..|[^{^])`)

// apacheTime returns the variable of %{…}t with an argument.
func apacheTime(argument string) variable {
	// httpd logs the start of a call, unless the format requests the end. If a format has both, the start is better,
	// even if the end has a finer unit.
	v := variable{slot: timestamp, stamp: Start, rank: 10}
	format, isEnd := strings.CutPrefix(argument, "end:")
	if isEnd {
		v.stamp, v.rank = End, 0
	} else {
		format = strings.TrimPrefix(argument, "begin:")
	}
	switch format {
	case "":
		v.pattern, v.before, v.until = commonTime, "[", "]"
	case "sec", "%s":
		v.unit = seconds
	case "msec":
		v.unit = milliseconds
		v.rank++
	case "usec":
		v.unit = microseconds
		v.rank += 2
	case "msec_frac":
		v.pattern = "%3"
	case "usec_frac":
		v.pattern = "%6"
	default:
		v.pattern = format
	}
	return v
}

// logFormat matches the name of the directive that defines a format.
var logFormat = regexp.MustCompile(`^(?i:LogFormat)(?:\s+|$)`)

// apacheDirective returns the format in a LogFormat directive or in quotes, without its backslashes. It returns a
// format that is neither unchanged, except for the backslashes.
func apacheDirective(s string) string {
	s = strings.TrimSpace(s)
	s = logFormat.ReplaceAllString(s, "")
	// The name of the format may follow its quotes. If text with a % follows, the quotes are part of the format.
	if s != "" && s[0] == '"' {
		inner, nickname, _ := unescape(s[1:], '"')
		if !strings.Contains(nickname, "%") {
			return inner
		}
	}
	text, _, _ := unescape(s, 0)
	return text
}

// nginxVariables maps the variables that a record needs to their slots. compile skips all others.
var nginxVariables = map[string]variable{
	"remote_addr":        {slot: client, rank: 2},
	"realip_remote_addr": {slot: client, rank: 1},
	"remote_port":        {slot: port},
	"realip_remote_port": {slot: port},
	"server_port":        {slot: port},
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
	// gRPC sends its status in a trailer, or in the header of a response without a body.
	"sent_trailer_grpc_status":     {slot: grpcCode, rank: 4},
	"sent_http_grpc_status":        {slot: grpcCode, rank: 3},
	"upstream_trailer_grpc_status": {slot: grpcCode, rank: 2},
	"upstream_http_grpc_status":    {slot: grpcCode, rank: 1},
	"request_time":                 {slot: duration, unit: seconds},
	"time_local":                   {slot: timestamp, pattern: commonTime, stamp: End},
	"time_iso8601":                 {slot: timestamp, pattern: "%FT%T%z", stamp: End},
	"msec":                         {slot: timestamp, unit: seconds, stamp: End, rank: 1},
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

// nginxName matches the sign and the name of a variable, with or without braces.
var nginxName = regexp.MustCompile(`^\$(?:(\w+)|\{(\w+)\})`)

// nginxVariable reads the variable at the beginning of rest.
func nginxVariable(rest string, column int) (variable, error) {
	m := nginxName.FindStringSubmatch(rest)
	if m == nil {
		v := variable{name: rest[:1], slot: nothing}
		return v, fmt.Errorf("a $ without the name of a variable, at column %d", column)
	}
	name := m[1] + m[2]
	v := nginxVariables[name]
	v.name, v.list = m[0], isList(name)
	return v, nil
}

// isList reports whether a variable of nginx is a list, with an element for each attempt with an upstream server, or
// for each proxy that has forwarded the request. Headers, cookies and trailers of an upstream are not lists, because
// they belong to its last response. The status of the cache is not a list, either.
func isList(name string) bool {
	if name == "http_x_forwarded_for" || name == "proxy_add_x_forwarded_for" {
		return true
	}
	of, ok := strings.CutPrefix(name, "upstream_")
	if !ok {
		return false
	}
	for _, single := range []string{"http_", "cookie_", "trailer_", "cache_", "last_"} {
		if strings.HasPrefix(of, single) {
			return false
		}
	}
	return true
}

// nginxHead matches the text before the quoted strings of a log_format directive: log_format, the name of the format,
// and its escape parameter.
var nginxHead = regexp.MustCompile(`^(log_format\s+\S+\s*)?(?:escape=(\S*)\s*)?`)

// nginxDirective returns the format and the escape parameter of a directive, or of a part of one.
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
