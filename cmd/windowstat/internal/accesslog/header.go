package accesslog

import "bytes"

// header returns the length of the header that syslog, journalctl or "docker logs --timestamps" has put before a line;
// 0 if the line has no header. A priority such as <134> may precede each of these headers:
//
//	Nov 22 10:00:01 host tag[17]: …              RFC 3164 and journalctl; host, tag and process are optional
//	2026-11-22T10:00:01.123456+00:00 host tag: … rsyslog, and journalctl -o short-iso
//	Sun 2026-11-22 10:00:01 UTC host tag[17]: …  journalctl -o short-full
//	1 2026-11-22T10:00:01Z host tag 17 id [x]: … RFC 5424, with structured data or a "-" before the message
//	2026-11-22T10:00:01.123456789Z …             docker logs --timestamps and kubectl logs --timestamps
//
// dated says that the lines of the format begin with a date themselves. Then a date is part of a header only if a date,
// a JSON object or another header follows it.
func header(line []byte, dated bool) int {
	// Syslog over TCP writes the length of the message before the priority.
	if n := leadingDigits(line[:min(len(line), 7)]); n > 0 && n+1 < len(line) && line[n] == ' ' &&
		priority(line[n+1:]) > 0 {
		return n + 1
	}
	at := priority(line)
	if bytes.HasPrefix(line[at:], []byte("1 ")) {
		if n := structuredHeader(line[at:]); n > 0 {
			return at + n
		}
	}
	date, short := headerTime(line[at:])
	if at+date == 0 {
		return 0
	}
	end := at + date
	// Only the short time of RFC 3164 has a host without a tag after it. After any other time, a word without a tag is
	// the beginning of the message.
	message := tagged(line[end:])
	switch {
	case message > 0:
		end += message
	case short:
		end += hostname(line[end:])
	}
	if !dated || at > 0 {
		return end
	}
	rest := bytes.TrimPrefix(line[end:], bom)
	if len(rest) > 0 && (rest[0] == '{' || beginsWithDate(rest) || logsPrefix(rest) > 0 || header(rest, true) > 0) {
		return end
	}
	return 0
}

// priority returns the length of the priority of a syslog line, such as <134>; 0 if the line has no priority.
func priority(line []byte) int {
	if line[0] != '<' {
		return 0
	}
	n := leadingDigits(line[1:min(len(line), 5)])
	if n == 0 || n > 3 || n+1 >= len(line) || line[n+1] != '>' {
		return 0
	}
	return n + 2
}

// headerTime returns the length of the time in a header and of the space after it; 0 if b does not begin with such a
// time. short reports the form of RFC 3164, which has no year.
func headerTime(b []byte) (length int, short bool) {
	at := 0
	if len(b) > 4 && b[3] == ' ' && contains("MonTueWedThuFriSatSun", b[:3]) {
		at = 4
	}
	switch t := b[at:]; {
	case looksLike(t, "Nov 22 10:00:01") && contains(months, t[:3]):
		at, short = at+len("Nov 22 10:00:01"), true
	case looksLike(t, "2026-11-22T10:00:01") || at > 0 && looksLike(t, "2026-11-22 10:00:01"):
		at += len("2026-11-22T10:00:01")
		// journalctl -o short-full writes the zone as a separate word.
		if t[10] == ' ' && b[at] == ' ' {
			at++
			for at < len(b) && b[at] >= 'A' && b[at] <= 'Z' {
				at++
			}
		}
	default:
		return 0, false
	}
	// Skip the fraction of the second and the offset of the zone.
	for at < len(b) && (isDigit(b[at]) || bytes.IndexByte([]byte(".,:+-Z"), b[at]) >= 0) {
		at++
	}
	if at == len(b) || b[at] != ' ' {
		return 0, false
	}
	at++
	// The C library's ctime, which some syslog programs use, writes the year after the time of day.
	if y := b[at:]; short && len(y) > 4 && leadingDigits(y) == 4 && y[4] == ' ' {
		at += len("2026 ")
	}
	return at, short
}

// looksLike reports whether b is longer than the example time, has the same punctuation, and begins like it with a
// digit or with a letter. It does not check the digits.
func looksLike(b []byte, time string) bool {
	if len(b) <= len(time) || isDigit(b[0]) != isDigit(time[0]) {
		return false
	}
	for i := range len(time) {
		if c := time[i]; (c == ' ' || c == '-' || c == ':' || c == 'T') && b[i] != c {
			return false
		}
	}
	return true
}

// months are the names of the months in syslog headers.
const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// contains reports whether name is one of the names in names, a string of names of three letters each.
func contains(names string, name []byte) bool {
	for i := 0; i+3 <= len(names); i += 3 {
		if names[i:i+3] == string(name) {
			return true
		}
	}
	return false
}

// tagged returns the length of the tag in a header, which ends with a colon, and of the words before the tag: a host,
// and the facility that BusyBox writes. It returns 0 if the header has no tag.
func tagged(b []byte) int {
	const maxLength = 300
	at := 0
	for range 3 {
		n := bytes.IndexByte(b[at:min(len(b), maxLength)], ' ')
		if n <= 0 {
			return 0
		}
		word := b[at : at+n]
		if at += n + 1; isTag(word) {
			return at
		}
	}
	return 0
}

// isTag reports whether a word is the tag of a program with its colon: nginx: or haproxy[17]: or docker/3f5c[17]:, but
// not unix: or 2001:db8::.
func isTag(word []byte) bool {
	name, ok := bytes.CutSuffix(word, []byte(":"))
	if !ok || len(name) == 0 || string(name) == "unix" {
		return false
	}
	process := false
	if i := bytes.IndexByte(name, '['); i > 0 && name[len(name)-1] == ']' {
		name, process = name[:i], true
	}
	letters := process
	for _, c := range name {
		lower := c | 0x20
		switch {
		case lower >= 'a' && lower <= 'z':
			letters = true
		case !isDigit(c) && bytes.IndexByte([]byte("_./@()-"), c) < 0:
			return false
		}
	}
	return letters
}

// hostname returns the length of the host in a header that has no tag, and of the space after the host. The first word
// is a host unless it clearly belongs to the message: if it contains JSON, a bracket or a quote, or if " - " follows
// it, as after the client of a call.
func hostname(b []byte) int {
	n := bytes.IndexByte(b, ' ')
	if n <= 0 || bytes.ContainsAny(b[:n], `{["`) || bytes.HasPrefix(b[n:], []byte(" - ")) {
		return 0
	}
	return n + 1
}

// structuredHeader returns the length of a header of RFC 5424 that begins with its version: time, host, program,
// process, message id, and structured data. It returns 0 if the line has no such header. Some programs write a tag with
// a colon instead of the last four parts; then the header ends after the tag.
func structuredHeader(b []byte) int {
	at := len("1 ")
	for word := range 5 {
		n := bytes.IndexByte(b[at:], ' ')
		if n <= 0 || word == 0 && string(b[at:at+n]) != "-" && !beginsWithDate(b[at:]) {
			return 0
		}
		end := at + n
		if word == 2 && isTag(b[at:end]) {
			return end + 1
		}
		at = end + 1
	}
	if at == len(b) {
		return 0
	}
	if b[at] == '-' {
		at++
	} else {
		for at < len(b) && b[at] == '[' {
			n := structuredElement(b[at:])
			if n == 0 {
				return 0
			}
			at += n
		}
	}
	switch {
	case at == len(b):
		return at
	case b[at] != ' ':
		return 0
	}
	return at + 1
}

// structuredElement returns the length of an element of structured data, such as [id key="a \"quoted\" value"]; 0 if it
// has no end.
func structuredElement(b []byte) int {
	for at := 0; at < len(b); at++ {
		switch b[at] {
		case '"':
			n := quoted(b, at)
			if n < 0 {
				return 0
			}
			at = n
		case ']':
			return at + 1
		}
	}
	return 0
}

// beginsWithDate reports whether a line begins with a date.
func beginsWithDate(b []byte) bool {
	if len(b) > len("2026-11-22") && leadingDigits(b) == 4 && (b[4] == '-' || b[4] == '/') && isDigit(b[5]) {
		return true
	}
	n, _ := headerTime(b)
	return n > 0
}
