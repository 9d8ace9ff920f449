package accesslog

import (
	"fmt"
	"strings"
)

// apacheDirectives are the directives that a record needs, besides %t and %T. All others are skipped.
var apacheDirectives = map[string]variable{
	"a":    {slot: client, rank: 3},
	"h":    {slot: client, rank: 2},
	"{c}a": {slot: client, rank: 1},
	"{c}h": {slot: client, rank: 1},
	"V":    {slot: host, rank: 2},
	"v":    {slot: host, rank: 1},
	"m":    {slot: method},
	"U":    {slot: target},
	"q":    {slot: tail},
	"r":    {slot: request},
	"s":    {slot: status},
	"D":    {slot: duration, unit: microseconds, rank: 3, digits: onlyDigits},
	"b":    {digits: digitsOrDash},
	"B":    {digits: digitsOrDash},
	"I":    {digits: digitsOrDash},
	"O":    {digits: digitsOrDash},
	"k":    {digits: digitsOrDash},
	"p":    {digits: digitsOrDash},
}

// Apache returns the format of a LogFormat string of httpd, such as
//
//	%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D
//
// with or without the backslashes, or of the whole directive with its quotes. It needs a status, %>s or %s, and a time: %t,
// or %{…}t with sec, msec, usec, msec_frac, usec_frac or a strftime pattern of %Y %m %b %d %H %M %S %z %s %F %T, with or
// without begin: or end: before it. Several may make up one time. Directives need literal text between them; unknown ones
// are skipped. The error joins all problems.
func Apache(format string) (*Format, error) {
	text := apacheDirective(format)
	var prefix strings.Builder
	var tokens []token
	var problems []error
	literal := func(s string) {
		if n := len(tokens); n > 0 {
			tokens[n-1].until += s
		} else {
			prefix.WriteString(s)
		}
	}
	for i := 0; i < len(text); {
		switch {
		case text[i] != '%':
			literal(text[i : i+1])
			i++
		case strings.HasPrefix(text[i:], "%%"):
			literal("%")
			i += 2
		default:
			argument, letter, width := apacheParts(text[i:])
			if width == 0 {
				problems = append(problems, fmt.Errorf("the directive %q, at column %d, has no end", text[i:], i+1))
				i = len(text)
				continue
			}
			name := text[i : i+width]
			v, open, end, err := apacheMeaning(argument, letter)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s, at column %d: %w", name, i+1, err))
			}
			v.name, v.at = name, i+1
			if letter == "s" && !strings.Contains(name, "<") && strings.Contains(name, ">") {
				v.rank = 1 // the status that was sent, and not the one in front of an internal redirect
			}
			literal(open)
			tokens = append(tokens, token{variable: v, until: end})
			i += width
		}
	}
	return compile(text, prefix.String(), tokens, true, problems)
}

// apacheParts reads a directive: % and conditions, which it skips, an optional {argument}, and the letter.
func apacheParts(s string) (argument, letter string, width int) {
	i := 1
	for i < len(s) && strings.IndexByte("!<>,", s[i]) >= 0 || i < len(s) && isDigit(s[i]) {
		i++
	}
	if i < len(s) && s[i] == '{' {
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", "", 0
		}
		argument = s[i+1 : i+end]
		i += end + 1
		for i < len(s) && (s[i] == '<' || s[i] == '>') {
			i++
		}
	}
	long := 1
	if i < len(s) && s[i] == '^' { // ^ti, ^to, ^FU, ^FB
		long = 3
	}
	if i+long > len(s) {
		return "", "", 0
	}
	return argument, s[i : i+long], i + long
}

// apacheMeaning returns the variable of a directive, and the literals around its value.
func apacheMeaning(argument, letter string) (v variable, open, end string, err error) {
	switch letter {
	case "t":
		return apacheTime(argument)
	case "T":
		v = variable{slot: duration, unit: seconds, rank: 1}
		switch argument {
		case "", "s":
		case "ms":
			v.unit, v.rank = milliseconds, 2
		case "us":
			v.unit, v.rank = microseconds, 3
		case "+s":
			v.slot = more
		default:
			err = fmt.Errorf("there is no unit %q; allowed are s, ms and us", argument)
		}
		return v, "", "", err
	case "a", "h":
		if argument != "" {
			letter = "{" + argument + "}" + letter
		}
	case "i":
		if strings.EqualFold(argument, "Host") {
			return variable{slot: host, rank: 3}, "", "", nil
		}
	}
	return apacheDirectives[letter], "", "", nil
}

// apacheTime reads the argument of %{…}t.
func apacheTime(argument string) (v variable, open, end string, err error) {
	v = variable{slot: timestamp, stamp: Start}
	format, isEnd := strings.CutPrefix(argument, "end:")
	if isEnd {
		v.stamp = End
	} else {
		format = strings.TrimPrefix(argument, "begin:")
	}
	switch format {
	case "":
		v.pattern = commonTime
		return v, "[", "]", nil
	case "sec", "%s":
		v.unit = seconds
	case "msec":
		v.unit, v.rank = milliseconds, 1
	case "usec":
		v.unit, v.rank = microseconds, 2
	case "msec_frac":
		v.pattern = "%3"
	case "usec_frac":
		v.pattern = "%6"
	default:
		v.pattern = format
		_, err = newLayout(format, 0)
	}
	return v, "", "", err
}

// apacheDirective extracts the format from a LogFormat directive, or from quotes, and removes its backslashes.
func apacheDirective(s string) string {
	s = strings.TrimSpace(s)
	if word, rest := cutSpace(s); strings.EqualFold(word, "LogFormat") {
		s = rest
	}
	if s != "" && s[0] == '"' {
		inner, nickname := unescape(s[1:], '"')
		if !strings.Contains(nickname, "%") {
			return inner
		}
	}
	text, _ := unescape(s, 0)
	return text
}

// unescape removes the backslashes up to an unescaped end, and returns what follows it.
func unescape(s string, end byte) (text, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == end {
			return b.String(), s[i+1:]
		}
		if s[i] == '\\' && i+1 < len(s) {
			i++
			switch s[i] {
			case 't':
				b.WriteByte('\t')
				continue
			case 'n':
				b.WriteByte('\n')
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
