package accesslog

import (
	"bytes"
	"errors"
)

// ErrPartial is what [Parser.Parse] returns for a part of a line that a container's runtime has split, unless it is the last: that
// one is parsed as the whole.
var ErrPartial = errors.New("the line goes on in the next one")

const (
	// dockerSplits is the length at which Docker splits lines.
	dockerSplits = 16 << 10
	// longest is how much of a split line is kept.
	longest = 1 << 20
)

// Partial reports whether the rest of a line that was split has not come yet.
func (p *Parser) Partial() bool { return len(p.parts[0])+len(p.parts[1]) > 0 }

// unwrap returns the line that a container's runtime has put into one of its own, Docker into JSON, the others, and so
// Kubernetes, behind a time, stream and tag; or a line behind the header of syslog, if the format has that. It is false if the line
// goes on in the next one.
func (p *Parser) unwrap(line []byte) ([]byte, bool) {
	const docker, stream = `{"log":"`, " stdout F "
	whole := true
	// The beginning of a line tells what it is wrapped in, so that a line that is not wrapped costs two comparisons.
	switch {
	case len(line) > len(docker) && string(line[:len(docker)]) == docker:
		if end := quoted(line, len(docker)-1); end > 0 {
			text := p.unescaped(line[len(docker):end])
			line, whole = p.join(0, trimEnd(text), len(text) < dockerSplits || text[len(text)-1] == '\n')
		}
	case len(line) > len("2006-01-02T15:04:05Z")+len(stream) && line[4] == '-' && line[10] == 'T':
		at := bytes.Index(line[:min(len(line), 40)], []byte(" std"))
		if at <= 0 || at+len(stream) > len(line) {
			break
		}
		if tag := line[at+len(" stdout "):]; (tag[0] == 'F' || tag[0] == 'P') && tag[1] == ' ' {
			from := 0
			if line[at+len(" std")] == 'e' {
				from = 1
			}
			line, whole = p.join(from, tag[2:], tag[0] == 'F')
		}
	}
	// The header ends before the request does, and a request may have anything in it.
	if p.format.syslog && whole {
		if at := bytes.Index(line, []byte("]: ")); at > 0 && at < bytes.IndexByte(line, '"') {
			line = line[at+len("]: "):]
		}
	}
	return line, whole
}

// join puts a line together that a runtime has split, of stdout or stderr.
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
