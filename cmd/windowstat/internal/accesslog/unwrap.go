package accesslog

import (
	"bytes"
	"errors"
)

// ErrPartial is the error of [Parser.Parse] for each part but the last of a line that a container runtime has split.
// With the last part, Parse parses the joined line.
var ErrPartial = errors.New("the line continues in the next one")

const (
	// dockerSplits is the length at which Docker splits lines, in bytes.
	dockerSplits = 16 << 10
	// longest is the maximum length of a joined line. The parser drops the rest of a longer line.
	longest = 1 << 20
	// maxWrappings limits the number of nested wrappings of a line. Four are realistic: a byte order mark, Docker,
	// syslog, and another byte order mark.
	maxWrappings = 6
)

// bom is the byte order mark of UTF-8. Windows programs write it at the beginning of a file, and RFC 5424 allows it
// before a message.
var bom = []byte("\uFEFF")

// Partial reports whether the parser holds parts of a split line whose last part has not arrived.
func (p *Parser) Partial() bool { return len(p.parts[0])+len(p.parts[1]) > 0 }

// unwrap returns the line without its wrappings. whole is false if the line is a part of a split line and another part
// follows; then unwrap keeps the part.
//
// Wrappings are NULs and a byte order mark, the line formats of Docker (JSON) and of the container runtimes of
// Kubernetes (time, stream and tag), the JSON objects of log shippers, and the headers of syslog and journalctl. They
// may be nested in any order, so each round of the loop removes the outermost one. The first byte of a line tells which
// one it can be, so a line without a wrapping costs a few comparisons.
func (p *Parser) unwrap(line []byte) (_ []byte, whole bool) {
	for range maxWrappings {
		if len(line) == 0 {
			break
		}
		before := len(line)
		switch c := line[0]; {
		case c == 0:
			// After a power cut, a file system may return NULs for data that it has lost. A server that writes without
			// O_APPEND leaves NULs before its next line when its log is truncated.
			line = bytes.TrimLeft(line, "\x00")
		case c == bom[0]:
			line = bytes.TrimPrefix(line, bom)
		case c == '{':
			line, whole = p.unwrapDocker(line)
			if !whole {
				return nil, false
			}
			// The object may be the call itself: lines in JSON can have the keys of an envelope, too. The parser of a
			// JSON format therefore tries the object first, and calls readEnveloped if that fails.
			if p.format.json || len(line) == 0 {
				break
			}
			if text, ok := p.envelope(line); ok {
				line = text
			}
		case c >= 'a' && c <= 'z' || c == '[':
			if !p.format.piped {
				line = line[logsPrefix(line):]
			}
		case mayHaveHeader(line):
			line, whole = p.unwrapCRI(line)
			if !whole {
				return nil, false
			}
			if len(line) == before {
				line = line[header(line, p.format.dated):]
			}
		}
		if len(line) == before {
			break
		}
	}
	return line, true
}

// logsPrefix returns the length of the prefix that "docker compose logs" (web-1  | …) and "kubectl logs --prefix"
// ([pod/web/nginx] …) write before a line; 0 if the line has no such prefix.
func logsPrefix(line []byte) int {
	if bytes.HasPrefix(line, []byte("[pod/")) {
		if i := bytes.IndexByte(line, ']'); i > 0 && i+1 < len(line) && line[i+1] == ' ' {
			return i + 2
		}
		return 0
	}
	at := 0
	for at < len(line) && (isDigit(line[at]) || line[at]|0x20 >= 'a' && line[at]|0x20 <= 'z' || line[at] == '-' ||
		line[at] == '_') {
		at++
	}
	name := at
	for at < len(line) && line[at] == ' ' {
		at++
	}
	if at == name || name == 0 || at+1 >= len(line) || line[at] != '|' || line[at+1] != ' ' {
		return 0
	}
	return at + 2
}

// mayHaveHeader reports whether a line may begin with the header of syslog or with the fields of CRI. It is a fast
// check that excludes most other lines.
func mayHaveHeader(line []byte) bool {
	const shortest = len("<1>x")
	if len(line) < shortest {
		return false
	}
	switch c := line[0]; {
	case c == '<':
		return true
	case isDigit(c): // a year, the version of RFC 5424, or a length
		return line[1] == ' ' || line[2] == ' ' || line[3] == ' ' ||
			len(line) > 10 && (line[4] == '-' || line[4] == ' ')
	}
	return line[0] >= 'A' && line[0] <= 'Z' && line[3] == ' ' // a month or a day of the week
}

// unwrapDocker returns the text of a line of Docker's json-file driver, {"log":"…\n","stream":"stdout","time":"…"}. It
// returns any other line unchanged. It reads only the beginning of the object, because Docker writes the key "log"
// first. A text without a line feed is a part of a split line if it has the length at which Docker splits.
func (p *Parser) unwrapDocker(line []byte) (_ []byte, whole bool) {
	const key = `"log"`
	at := space(line, 1)
	if !bytes.HasPrefix(line[at:], []byte(key)) {
		return line, true
	}
	at = space(line, at+len(key))
	if at == len(line) || line[at] != ':' {
		return line, true
	}
	at = space(line, at+1)
	if at == len(line) || line[at] != '"' {
		return line, true
	}
	end := quoted(line, at)
	if end <= at+1 { // an incomplete or empty text
		return line, true
	}
	text := p.unescaped(line[at+1 : end])
	return p.join(0, trimEnd(text), len(text) < dockerSplits || text[len(text)-1] == '\n')
}

// envelopeKeys are the keys under which log shippers and journalctl -o json store the line of a server. An object with
// a level is not an envelope, but a message.
var envelopeKeys = func() *keySet {
	keys := new(keySet)
	keys.add("MESSAGE log message", 3, meaning{slot: note})
	keys.add("level lvl severity log.level", 4, meaning{slot: nothing})
	return keys
}()

// envelope returns the line in the JSON object of a log shipper. ok is false if line is not such an object.
func (p *Parser) envelope(line []byte) (text []byte, ok bool) {
	var best [slots]value
	if line[0] != '{' || collect(line, envelopeKeys, &best) == 0 || !best[note].quoted || best[nothing].rank() > 0 {
		return nil, false
	}
	return trimEnd(p.plain(&best[note])), true
}

// unwrapCRI returns the text of a line of containerd or CRI-O, "2026-11-22T10:00:02.5Z stdout F …". The tag is F for a
// whole line or for its last part, and P for any other part. unwrapCRI returns any other line unchanged.
func (p *Parser) unwrapCRI(line []byte) (_ []byte, whole bool) {
	const stream = " stdout F "
	if len(line) < len("2006-01-02T15:04:05Z")+len(stream) || line[4] != '-' || line[10] != 'T' {
		return line, true
	}
	at := bytes.Index(line[:min(len(line), 40)], []byte(" std"))
	if at <= 0 || at+len(stream) > len(line) {
		return line, true
	}
	tag := line[at+len(" stdout "):]
	if tag[0] != 'F' && tag[0] != 'P' || tag[1] != ' ' {
		return line, true
	}
	from := 0
	if line[at+len(" std")] == 'e' {
		from = 1
	}
	return p.join(from, tag[2:], tag[0] == 'F')
}

// join appends a part to the split line of a stream (0 for stdout, 1 for stderr). It returns the line as far as it is
// known, and whether the part was the last one.
func (p *Parser) join(stream int, part []byte, last bool) ([]byte, bool) {
	before := p.parts[stream]
	if last && len(before) == 0 {
		return part, true
	}
	whole := append(before, part[:min(len(part), longest-len(before))]...)
	if p.parts[stream] = whole; last {
		p.parts[stream] = whole[:0]
	}
	return whole, last
}
