package accesslog

import (
	"bytes"
	"regexp"
)

// A Kind classifies the lines that are not calls. Servers write other lines into their logs, and so do the programs
// that share a stream with them. Such a line is no defect of the log. A line that could be a call and cannot be parsed
// is one.
type Kind uint8

// The kinds of lines.
const (
	Call      Kind = iota // a call, or a line that could be one
	Empty                 // nothing, or only NULs
	Directive             // begins with #, like the headers of IIS and CloudFront
	Message               // a message of the server, or of a script that starts it
	Kinds                 // the number of kinds
)

// String returns the name of the kind.
func (k Kind) String() string { return [...]string{"call", "empty", "directive", "message", ""}[k] }

// Kind returns the kind of the last line, after [Parser.Parse] has returned an error other than [ErrPartial]. It
// depends on the format only through the JSON keys. A call in another format is therefore a Call, and the command
// reports the lines of a wrong format as malformed, not as messages.
func (p *Parser) Kind() Kind { return kindOf(p.line, p.format.keys) }

// kindOf returns the kind of a line that could not be parsed as a call. Its wrappings have been removed. keys are the
// keys of a JSON format; nil means serverKeys.
func kindOf(line []byte, keys *keySet) Kind {
	switch {
	case len(bytes.TrimLeft(line, " \t\r\x00")) == 0:
		return Empty
	case line[0] == '#':
		return Directive
	case isMessage(line, keys):
		return Message
	}
	return Call
}

// isMessage reports whether a line is a message. It requires the marks of a message and the absence of a status, so a
// call in an unknown format is never a message.
//
// A JSON object is a message if it has a level or a text and nothing that belongs to a call, or if a logger of Caddy
// wrote it that does not write access logs. A text line is a message if it has, for example, a tag, a level, the header
// of a Kubernetes program or indentation, or if it consists of words.
func isMessage(line []byte, keys *keySet) bool {
	if object, ok := jsonPart(line); ok {
		if keys == nil {
			keys = serverKeys
		}
		var found, marks [slots]value
		if collect(object, keys, &found) == 0 {
			return false
		}
		if isOther(&found, line[:len(line)-len(object)]) {
			return true
		}
		if found[status].rank() > 0 {
			return false
		}
		// An object with parts of a request is a call whose status is missing.
		for _, s := range []slot{method, target, request, duration} {
			if found[s].rank() > 0 {
				return false
			}
		}
		console := len(object) < len(line)
		return console || collect(object, messageKeys, &marks) > 0 && marks[note].rank() > 0
	}
	// The marks are at the beginning of a line. The limit bounds the time of the expressions.
	line = line[:min(len(line), 1000)]
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\x1b' {
			return false
		}
	}
	if statusKey.Match(line) {
		return false
	}
	word, _, _ := bytes.Cut(line, []byte(" "))
	return isTag(word) || line[0] == ' ' || line[0] == '\t' || level.Match(line) || klog.Match(line) ||
		trace.Match(line) || isProse(line)
}

// messageKeys are the keys of JSON objects that mark a message.
var messageKeys = func() *keySet {
	keys := new(keySet)
	keys.add("level lvl severity log.level msg message error", 7, meaning{slot: note})
	return keys
}()

var (
	// level is the severity of a message in one of its usual forms, before any text in quotes: [notice],
	// [mpm_event:notice], level=info, INFO, and info between tabs.
	level = regexp.MustCompile(`^(?:time="[^"]*")?[^"]{0,120}?(?:` +
		`[\[:](?i:` + levels + `)\]|` +
		`(?:^|[\s\[(|m])(?:` + upperLevels + `)(?:[\s\]:)|\x1b]|$)|` +
		`\t(?:` + levels + `)\t|` +
		`(?:^|\s)(?:level|lvl|severity)="?(?i:` + levels + `)\b)`)
	// klog is the header of Kubernetes programs, such as ingress-nginx: I1122 10:00:01.000000       7 main.go:100].
	klog = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `)
	// trace is a line of a stack trace of Go, a note of journalctl such as "-- Reboot --", or a line without letters
	// and digits.
	trace = regexp.MustCompile(`^(?:-- .* --$|goroutine \d+ \[|[\w./*()-]+\([^ ]*\)$|[^\pL\d]*$)`)
	// statusKey is a status with its key, as in logfmt: status=200.
	statusKey = regexp.MustCompile(`(?i)(?:status|code)"?[=:] ?"?[1-5]\d\d\b`)
	// proseWord is a word of prose. The fields of calls are numbers, addresses, or in quotes.
	proseWord = regexp.MustCompile(`^[A-Za-z]{2,}[.,:;!]?$`)
)

const (
	levels = `emerg|alert|crit|critical|fatal|panic|err|error|severe|warn|warning|notice|info|log|debug|trace(?:\d)?`
	// upperLevels are the levels that are marked only by their capital letters.
	upperLevels = `EMERG|ALERT|CRIT|CRITICAL|FATAL|PANIC|ERR|ERROR|SEVERE|WARN|WARNING|NOTICE|INFO|LOG|DEBUG|TRACE`
)

// isProse reports whether a line consists of words and has no number that could be a status. HAProxy writes such lines:
// "Proxy web started." and "10.0.0.7:40512 [22/Nov/2026:10:00:01.100] web/1: SSL handshake failure".
//
// Two words are enough if the line begins with a word. Otherwise three are required. If the line has quotes, four words
// must precede them, because the name of a user in a call may have three. A line that has lost its beginning and starts
// within a user agent is not prose.
func isProse(line []byte) bool {
	before, _, quotes := bytes.Cut(line, []byte(`"`))
	if quotes && bytes.ContainsAny(before, ";(") {
		return false
	}
	words, begins, first := 0, false, true
	for word := range bytes.FieldsSeq(before) {
		if n := smallNumber(word); len(word) == 3 && n >= 100 && n < 600 {
			return false
		}
		if proseWord.Match(word) {
			words++
			begins = begins || first
		}
		first = false
	}
	switch {
	case quotes:
		return words >= 4
	case begins:
		return words >= 2
	}
	return words >= 3
}
