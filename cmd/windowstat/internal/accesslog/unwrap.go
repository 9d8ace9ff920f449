package accesslog

import "bytes"

// unwrap returns the line that a container's runtime has put into one of its own: Docker into JSON, the others, and so
// Kubernetes, behind a time, stream and tag; or a line behind the header of syslog, if the format has that.
func (p *Parser) unwrap(line []byte) []byte {
	const docker, stream = `{"log":"`, " stdout "
	switch {
	case len(line) > len(docker) && string(line[:len(docker)]) == docker:
		if end := quoted(line, len(docker)-1); end > 0 {
			v := value{raw: line[len(docker):end], quoted: true}
			line = trimEnd(p.plain(&v))
		}
	case len(line) > 48 && line[4] == '-' && line[10] == 'T':
		if at := bytes.Index(line[:40], []byte(" std")); at > 0 {
			if tag := line[at+len(stream):]; (tag[0] == 'F' || tag[0] == 'P') && tag[1] == ' ' {
				line = tag[2:]
			}
		}
	}
	if p.format.syslog {
		if at := bytes.Index(line, []byte("]: ")); at > 0 && at < bytes.IndexByte(line, '"') {
			line = line[at+len("]: "):]
		}
	}
	return line
}
