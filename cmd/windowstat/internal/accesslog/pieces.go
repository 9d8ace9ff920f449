package accesslog

// parts collects a time that is written in pieces.
type parts struct {
	whole           bool // one of the pieces was a time of its own
	year, month     int
	day             int
	hour, min, sec  int
	twelve, pm      bool // hour is one of twelve, of the afternoon
	zoned           bool
	offset, subsecs int  // seconds, nanoseconds
	fine            bool // there is a fraction of a second
}

// read reads a time, or pieces of one, off the beginning of b, and returns how long it is; negative if it does not
// match. One that is whole is left in c.sec and c.nsec, pieces in c.parts.
func (c *clock) read(items []item, b []byte) int {
	n := 0
	for i := range items {
		width := c.readItem(&items[i], b[n:])
		if width < 0 {
			return -1
		}
		n += width
	}
	return n
}

// whole reads a time of its own, and returns how long it is; negative if it does not match.
func (c *clock) whole(it *item, b []byte) (n int) {
	switch it.kind {
	case itemCLF:
		n = c.clf(b)
	case itemISO:
		n = c.iso(b)
	default:
		if it.kind == itemCount {
			b = b[:digits(b)]
		}
		n = c.epoch(b, it.unit)
	}
	if n == 0 {
		return -1
	}
	return n
}

// readItem reads one item, and returns how long it is; negative if it does not match.
func (c *clock) readItem(it *item, b []byte) int {
	p := &c.parts
	number := func(to *int, width int, padded bool, low, high int) int {
		if len(b) < width {
			return -1
		}
		v := 0
		switch {
		case width == 4:
			v = four(b)
		case padded && b[0] == ' ' && isDigit(b[1]):
			v = int(b[1] - '0')
		default:
			v = two(b)
		}
		if v < low || v > high {
			return -1
		}
		*to = v
		return width
	}
	if it.whole() {
		p.whole = true
		return c.whole(it, b)
	}
	switch it.kind {
	case itemLiteral:
		if len(b) < len(it.text) || string(b[:len(it.text)]) != it.text {
			return -1
		}
		return len(it.text)
	case itemFraction:
		width := seconds - it.unit
		if len(b) < width {
			return -1
		}
		ns, n := decimal(b[:width], it.unit)
		if n != width {
			return -1
		}
		p.subsecs, p.fine = int(ns), true
		return width
	case 'Y':
		return number(&p.year, 4, false, 0, 9999)
	case 'y':
		n := number(&p.year, 2, false, 0, 99)
		if p.year += 1900; p.year < 1969 { // as POSIX splits the centuries
			p.year += 100
		}
		return n
	case 'm':
		return number(&p.month, 2, false, 1, 12)
	case 'd', 'e':
		return number(&p.day, 2, it.kind == 'e', 1, 31)
	case 'H', 'k':
		return number(&p.hour, 2, it.kind == 'k', 0, 23)
	case 'I', 'l':
		p.twelve = true
		return number(&p.hour, 2, it.kind == 'l', 1, 12)
	case 'M':
		return number(&p.min, 2, false, 0, 59)
	case 'S':
		return number(&p.sec, 2, false, 0, 60)
	case 'b':
		if len(b) < 3 {
			return -1
		}
		if p.month = month(b); p.month == 0 {
			return -1
		}
		return 3
	case 'p':
		if len(b) < 2 || b[0]|0x20 != 'a' && b[0]|0x20 != 'p' || b[1]|0x20 != 'm' {
			return -1
		}
		p.pm = b[0]|0x20 == 'p'
		return 2
	case 'z':
		shift, width := zone(b)
		if width <= 0 {
			return -1
		}
		p.offset, p.zoned = shift, true
		return width
	case 'a':
		return letters(b, 3)
	}
	return letters(b, 5) // 'Z': the name of a zone is not unique, and so of no use
}

// letters returns how many letters b begins with, some most; negative if none.
func letters(b []byte, most int) int {
	n := 0
	for n < len(b) && n < most && b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z' {
		n++
	}
	if n == 0 {
		return -1
	}
	return n
}

// assemble makes a time of the pieces.
func (c *clock) assemble() bool {
	p := &c.parts
	if !p.whole {
		hour := p.hour
		if p.twelve {
			hour %= 12
			if p.pm {
				hour += 12
			}
		}
		midnight, ok := c.date(p.year, p.month, p.day)
		if !ok {
			return false
		}
		inDay := hour*3600 + p.min*60 + p.sec
		c.nsec, c.coarse = 0, true
		if p.zoned {
			c.sec = midnight + int64(inDay-p.offset)
		} else {
			c.sec = c.local(midnight, inDay)
		}
	}
	if p.subsecs != 0 {
		c.nsec = int64(p.subsecs)
	}
	c.coarse = c.coarse && !p.fine
	return true
}
