package accesslog

import (
	"bytes"
	"time"
)

// A clock parses times. It caches the last date, which the next line most likely has, too: it computes the calendar once
// for each day of the log.
type clock struct {
	zone *time.Location

	year, month, day int   // the last date
	midnight         int64 // its beginning in UTC, in seconds since 1970

	sec, nsec int64 // the parsed time
	coarse    bool  // it has no fraction of a second

	quarter   quarter // of the last local time
	before    int64   // the last local time, as it was taken
	ambiguous int64   // how many were of an hour that comes twice

	parts parts // of a time in several parts
}

// time returns the parsed time.
func (c *clock) time() time.Time { return time.Unix(c.sec, c.nsec).UTC() }

// clf reads 17/May/2015:10:05:03 +0000.
func (c *clock) clf(b []byte) (n int) {
	const width = len("17/May/2015:10:05:03 +0000")
	if len(b) < width {
		return 0
	}
	b = b[:width]
	if b[2] != '/' || b[6] != '/' || b[11] != ':' || b[20] != ' ' {
		return 0
	}
	midnight, ok := c.date(four(b[7:11]), month(b[3:6]), two(b[0:2]))
	inDay, ok2 := timeOfDay(b[12:20])
	offset, ok3 := offset(b[21:26])
	if !ok || !ok2 || !ok3 {
		return 0
	}
	c.sec, c.nsec, c.coarse = midnight+int64(inDay-offset), 0, true
	return width
}

// iso reads RFC 3339 and variants: 2015-05-17T10:05:03.123Z, with a space for the T, slashes for the dashes
// (Caddy's wall formats), a comma for the point, +02:00, +0200 or +02 for a zone, or none.
func (c *clock) iso(b []byte) (n int) {
	n = len("2015-05-17T10:05:03")
	if len(b) < n || b[4] != b[7] || b[4] != '-' && b[4] != '/' || b[10]|0x20 != 't' && b[10] != ' ' {
		return 0
	}
	year, month, day := four(b[0:4]), two(b[5:7]), two(b[8:10])
	midnight, ok := c.date(year, month, day)
	inDay, ok2 := timeOfDay(b[11:19])
	if !ok || !ok2 {
		return 0
	}
	c.nsec, c.coarse = 0, true
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
		c.coarse = false
		scale := int64(100_000_000)
		for n++; n < len(b) && isDigit(b[n]); n++ {
			c.nsec += int64(b[n]-'0') * scale
			scale /= 10
		}
	}
	shift, width := zone(b[n:])
	switch {
	case width < 0:
		return 0
	case width == 0:
		c.sec = c.local(midnight, inDay)
	default:
		c.sec = midnight + int64(inDay-shift)
	}
	return n + width
}

// epoch reads a number of units since 1970.
func (c *clock) epoch(b []byte, unit int) (n int) {
	ns, n := decimal(b, unit)
	c.sec, c.nsec = ns/1e9, ns%1e9
	c.coarse = unit == seconds && bytes.IndexByte(b[:n], '.') < 0
	return n
}

// date returns the midnight of a date in UTC; ok is false if there is no such date.
func (c *clock) date(year, month, day int) (midnight int64, ok bool) {
	if year == c.year && month == c.month && day == c.day && day != 0 {
		return c.midnight, true
	}
	if year < 0 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day { // 31 February is in March
		return 0, false
	}
	c.year, c.month, c.day, c.midnight = year, month, day, t.Unix()
	return c.midnight, true
}

// quarter has the offsets of the zone in a quarter of an hour of local time: two where clocks are set back, so that it comes
// twice.
type quarter struct {
	number      int64
	first, last int64
}

const quarterSeconds = 900

// local returns a time of the last date in the zone of the clock. Of two it is the one nearer to the line before, or the first.
func (c *clock) local(midnight int64, inDay int) int64 {
	wall := midnight + int64(inDay)
	if c.zone == time.UTC {
		return wall
	}
	if q := &c.quarter; q.number != wall/quarterSeconds || q.number == 0 {
		at := time.Date(c.year, time.Month(c.month), c.day, 0, 0, inDay, 0, c.zone)
		*q = quarter{wall / quarterSeconds, wall - at.Unix(), wall - at.Unix()}
		for _, near := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
			_, offset := at.Add(near).Zone()
			if _, own := time.Unix(wall-int64(offset), 0).In(c.zone).Zone(); own == offset {
				q.first, q.last = max(q.first, int64(offset)), min(q.last, int64(offset))
			}
		}
	}
	at, again := wall-c.quarter.first, wall-c.quarter.last
	if at != again {
		c.ambiguous++
		if max(again-c.before, c.before-again) < max(at-c.before, c.before-at) {
			at = again
		}
	}
	c.before = at
	return at
}

// timeOfDay reads 10:05:03 in seconds, or 60 in a leap second.
func timeOfDay(b []byte) (int, bool) {
	_ = b[7]
	h, m, s := two(b[0:2]), two(b[3:5]), two(b[6:8])
	return h*3600 + m*60 + s, uint(h) < 24 && uint(m) < 60 && uint(s) < 61 && b[2] == ':' && b[5] == ':'
}

// offset reads +0200, in seconds.
func offset(b []byte) (int, bool) {
	_ = b[4]
	h, m := two(b[1:3]), two(b[3:5])
	shift := h*3600 + m*60
	if b[0] == '-' {
		shift = -shift
	}
	return shift, uint(h) < 24 && uint(m) < 60 && (b[0] == '+' || b[0] == '-')
}

// zone reads Z, +02:00, +0200 or +02. The width is 0 if b begins with no zone, and negative if the zone is impossible.
func zone(b []byte) (shift, width int) {
	if len(b) == 0 {
		return 0, 0
	}
	if b[0]|0x20 == 'z' {
		return 0, 1
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' || two(b[1:3]) < 0 {
		return 0, 0
	}
	field := [5]byte{b[0], b[1], b[2], '0', '0'}
	width = 3
	switch {
	case len(b) >= 6 && b[3] == ':' && two(b[4:6]) >= 0:
		field[3], field[4], width = b[4], b[5], 6
	case len(b) >= 5 && two(b[3:5]) >= 0:
		field[3], field[4], width = b[3], b[4], 5
	}
	shift, ok := offset(field[:])
	if !ok {
		return 0, -1
	}
	return shift, width
}

// two reads two digits. It is negative for anything else.
func two(b []byte) int {
	_ = b[1]
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}

// four reads four digits. It is negative for anything else.
func four(b []byte) int {
	_ = b[3]
	hundreds, rest := two(b[0:2]), two(b[2:4])
	if hundreds < 0 || rest < 0 {
		return -1
	}
	return hundreds*100 + rest
}

// month reads the three letters of a month, large or small, and returns 1 to 12, or 0.
func month(b []byte) int {
	_ = b[2]
	switch uint32(b[0]|0x20)<<16 | uint32(b[1]|0x20)<<8 | uint32(b[2]|0x20) {
	case 'j'<<16 | 'a'<<8 | 'n':
		return 1
	case 'f'<<16 | 'e'<<8 | 'b':
		return 2
	case 'm'<<16 | 'a'<<8 | 'r':
		return 3
	case 'a'<<16 | 'p'<<8 | 'r':
		return 4
	case 'm'<<16 | 'a'<<8 | 'y':
		return 5
	case 'j'<<16 | 'u'<<8 | 'n':
		return 6
	case 'j'<<16 | 'u'<<8 | 'l':
		return 7
	case 'a'<<16 | 'u'<<8 | 'g':
		return 8
	case 's'<<16 | 'e'<<8 | 'p':
		return 9
	case 'o'<<16 | 'c'<<8 | 't':
		return 10
	case 'n'<<16 | 'o'<<8 | 'v':
		return 11
	case 'd'<<16 | 'e'<<8 | 'c':
		return 12
	}
	return 0
}
