package accesslog

import (
	"errors"
	"fmt"
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
	var prefix strings.Builder
	var tokens []token
	var problems []error
	for i := 0; i < len(text); {
		if text[i] != '$' {
			if n := len(tokens); n > 0 {
				tokens[n-1].until += text[i : i+1]
			} else {
				prefix.WriteByte(text[i])
			}
			i++
			continue
		}
		name, width := nginxName(text[i:])
		if name == "" {
			problems = append(problems, fmt.Errorf("a $ has no name of a variable behind it, at column %d", i+1))
			i++
			continue
		}
		v := nginxVariables[name]
		v.name, v.at = text[i:i+width], i+1
		tokens = append(tokens, token{variable: v})
		i += width
	}
	return compile(text, prefix.String(), tokens, escape == "json", problems)
}

// nginxName reads $name or ${name}.
func nginxName(s string) (name string, width int) {
	braced := strings.HasPrefix(s, "${")
	begin := 1
	if braced {
		begin = 2
	}
	end := begin
	for end < len(s) && (s[end] == '_' || isDigit(s[end]) || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	if !braced {
		return s[begin:end], end
	}
	if end == len(s) || s[end] != '}' {
		return "", 0
	}
	return s[begin:end], end + 1
}

// nginxDirective extracts the format and the escaping from a directive, or from a part of one.
func nginxDirective(s string) (text, escape string, err error) {
	s = strings.TrimSpace(s)
	directive := false
	if rest, ok := strings.CutPrefix(s, "log_format"); ok && rest != "" && isSpace(rest[0]) {
		directive = true
		s = strings.TrimSpace(rest)
		_, s = cutSpace(s) // its name
	}
	escape = "default"
	if rest, ok := strings.CutPrefix(s, "escape="); ok {
		escape, s = cutSpace(rest)
		if escape != "default" && escape != "json" && escape != "none" {
			return "", "", fmt.Errorf("the log format has escape=%s; nginx has default, json and none", escape)
		}
	}
	if !directive && (s == "" || s[0] != '\'') {
		return s, escape, nil
	}
	text, err = unquote(strings.TrimSuffix(s, ";"))
	return text, escape, err
}

// unquote joins the quoted strings of a directive.
func unquote(s string) (string, error) {
	var b strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		quote := s[0]
		if quote != '\'' && quote != '"' {
			return "", fmt.Errorf("the log format has text outside of its quotes, at %q", s)
		}
		i := 1
		for ; i < len(s) && s[i] != quote; i++ {
			if s[i] == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\') {
				i++
			}
			b.WriteByte(s[i])
		}
		if i == len(s) {
			return "", errors.New("the log format has a quote that is not closed")
		}
		s = s[i+1:]
	}
	return b.String(), nil
}

// cutSpace cuts s at the first white space.
func cutSpace(s string) (word, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool { return r < 128 && isSpace(byte(r)) })
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
