package accesslog

// parts collects a time that is written in parts.
type parts struct {
	whole           bool // one of the parts was a whole time
	year, month     int
	day             int
	hour, min, sec  int
	zoned           bool
	offset, subsecs int  // seconds, nanoseconds
	fine            bool // there is a fraction of a second
}

// read reads a time, or parts of one, at the beginning of b, and returns its length; negative if it does not match. A whole
// time goes to c.sec and c.nsec, parts go to c.parts.
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

// whole reads a whole time, and returns its length; negative if it does not match.
func (c *clock) whole(it *item, b []byte) (n int) {
	switch it.kind {
	case itemCLF:
		n = c.clf(b)
	case itemISO:
		n = c.iso(b)
	default:
		if it.kind == itemCount {
			b = b[:leadingDigits(b)]
		}
		n = c.epoch(b, it.unit)
	}
	if n == 0 {
		return -1
	}
	return n
}

// readItem reads one item, and returns its length; negative if it does not match.
func (c *clock) readItem(it *item, b []byte) int {
	p := &c.parts
	number := func(to *int, low, high int) int {
		if len(b) < 2 {
			return -1
		}
		v := two(b)
		if v < low || v > high {
			return -1
		}
		*to = v
		return 2
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
		if len(b) < 4 {
			return -1
		}
		if p.year = four(b); p.year < 0 {
			return -1
		}
		return 4
	case 'm':
		return number(&p.month, 1, 12)
	case 'd':
		return number(&p.day, 1, 31)
	case 'H':
		return number(&p.hour, 0, 23)
	case 'M':
		return number(&p.min, 0, 59)
	case 'S':
		return number(&p.sec, 0, 60)
	case 'b':
		if len(b) < 3 {
			return -1
		}
		if p.month = month(b); p.month == 0 {
			return -1
		}
		return 3
	}
	shift, width := zone(b) // 'z'
	if width <= 0 {
		return -1
	}
	p.offset, p.zoned = shift, true
	return width
}

// assemble makes a time of the parts.
func (c *clock) assemble() bool {
	p := &c.parts
	if !p.whole {
		midnight, ok := c.date(p.year, p.month, p.day)
		if !ok {
			return false
		}
		inDay := p.hour*3600 + p.min*60 + p.sec
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
