package accesslog

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
)

// A layout describes the text of a time: a number since 1970, or one of several layouts of package time.
type layout struct {
	// Layouts of package time, which differ in the form of the zone; empty if the time is a number.
	spelled []string
	unit    time.Duration // unit of the number
	least   int           // length of the shortest text
	inDay   int           // index of 15:04:05 in the text; 0 if the text begins with it or does not have it
}

// commonTime is the pattern of times in the common format.
const commonTime = "%d/%b/%Y:%H:%M:%S %z"

// conversions maps the conversions of strftime that can be parsed to their parts of a layout. %3 and %6 do not exist in
// strftime; they mean the digits of a second's fraction.
var conversions = map[string]string{
	"%Y": "2006", "%m": "01", "%b": "Jan", "%d": "02", "%H": "15", "%M": "04", "%S": "05", "%z": "-0700",
	"%F": "2006-01-02", "%T": "15:04:05", "%3": "000", "%6": "000000", "%%": "%",
}

// conversion matches a conversion of strftime, also an incomplete one at the end of a pattern.
var conversion = regexp.MustCompile(`%.?`)

// example is the time that checks layouts (see lacks) and that shows them in errors.
var example = time.Date(2015, 5, 17, 10, 5, 3, 123456000, time.UTC)

// newLayout compiles a pattern of strftime. An empty pattern means a number of units since 1970.
func newLayout(pattern string, unit time.Duration) (*layout, error) {
	if pattern == "" {
		return &layout{unit: unit}, nil
	}
	var err error
	spelled := conversion.ReplaceAllStringFunc(pattern, func(c string) string {
		as, ok := conversions[c]
		if !ok && err == nil {
			err = fmt.Errorf(
				"the time pattern %q has a conversion that cannot be read, %q; allowed are %%Y %%m %%b %%d %%H %%M "+
					"%%S %%z %%s %%F %%T %%%%",
				pattern,
				c,
			)
		}
		return as
	})
	if err != nil {
		return nil, err
	}
	l := &layout{spelled: []string{spelled}, least: len(spelled), inDay: max(0, strings.Index(spelled, "15:04:05"))}
	// Servers and log shippers write an offset with a colon, without a colon, or as Z.
	if before, after, zoned := strings.Cut(spelled, "-0700"); zoned {
		l.spelled, l.least = append(l.spelled, before+"Z07:00"+after, before+"Z07"+after), len(before)
	}
	return l, nil
}

// lacks returns the name of the part that times with this layout lack; "" if they are complete. It formats the example
// and parses the result: what the layout lacks has changed then.
func (l *layout) lacks() string {
	if len(l.spelled) == 0 {
		return ""
	}
	at, err := time.Parse(l.spelled[0], example.Format(l.spelled[0]))
	switch {
	case err != nil || at.Year() != example.Year() || at.YearDay() != example.YearDay():
		return "date"
	case at.Hour() != example.Hour() || at.Minute() != example.Minute() || at.Second() != example.Second():
		return "time of day to the second"
	}
	return ""
}

// part reports whether a time with this layout is incomplete, and must be joined to the time in the next variable.
func (l *layout) part() bool { return l != nil && l.lacks() != "" }

// String describes times with this layout for errors.
func (l *layout) String() string {
	if len(l.spelled) == 0 {
		return "a number of seconds, or parts of them, since 1970"
	}
	return "a time like " + example.Format(l.spelled[0])
}

// A clock parses times. To parse each time with package time would take half of the CPU time of a line, so a clock
// keeps the last time and takes the first of three ways that is possible:
//
//  1. The text is the same as before, as in most lines. A comparison is enough.
//  2. Only the time of day differs. sameDay reads its six digits and moves the last time.
//  3. Otherwise package time parses the text. This is rare: once a day in most logs.
type clock struct {
	zone   *time.Location
	at     time.Time // in UTC
	coarse bool      // the time has no fraction of a second

	text      []byte  // the last time
	layout    *layout // layout of the last time; nil if the time was invalid
	spelled   int     // index of the layout that matched last
	twice     bool    // the last time is in an hour that occurs twice, when clocks are set back
	ambiguous int64   // number of times in such hours
}

// read parses a time, and sets c.at and c.coarse. It returns false for an invalid time.
func (c *clock) read(l *layout, b []byte) (ok bool) {
	if (c.layout != l || !bytes.Equal(c.text, b)) && !c.sameDay(l, b) {
		c.layout, c.text, c.twice = nil, append(c.text[:0], b...), false
		if len(l.spelled) > 0 {
			ok = c.parse(l.spelled, b)
		} else if since, number := decimal(b, l.unit); number {
			c.at, ok = time.Unix(0, int64(since)).UTC(), true
		}
		if !ok {
			return false
		}
		finer := len(l.spelled) == 0 && l.unit < seconds
		c.layout, c.coarse = l, !finer && c.at.Nanosecond() == 0 && bytes.IndexByte(b, '.') < 0
	}
	if c.twice {
		c.ambiguous++
	}
	return true
}

// sameDay parses a time that differs from the last one only in the time of day, and returns false for any other time.
// It takes a fifth of the CPU time of parse. It works only in UTC, because the offset of another zone may change within
// a day.
func (c *clock) sameDay(l *layout, b []byte) bool {
	from, to := l.inDay, l.inDay+len("15:04:05")
	if c.layout != l || from == 0 || c.zone != time.UTC || len(b) != len(c.text) ||
		!bytes.Equal(b[:from], c.text[:from]) ||
		!bytes.Equal(b[to:], c.text[to:]) {
		return false
	}
	at, before := timeOfDay(b[from:to]), timeOfDay(c.text[from:to])
	if at < 0 || before < 0 {
		return false
	}
	c.at = c.at.Add(time.Duration(at-before) * time.Second)
	copy(c.text, b)
	return true
}

// timeOfDay parses 15:04:05 and returns the seconds since midnight; a negative number for anything else.
func timeOfDay(b []byte) int {
	_ = b[7]
	h, m, s := twoDigits(b[0:2]), twoDigits(b[3:5]), twoDigits(b[6:8])
	if uint(h) > 23 || uint(m) > 59 || uint(s) > 59 || b[2] != ':' || b[5] != ':' {
		return -1
	}
	return h*3600 + m*60 + s
}

// parse parses a time with one of several layouts, beginning with the layout that matched last. A time without a zone
// is in the zone of the clock.
func (c *clock) parse(spelled []string, b []byte) bool {
	for range spelled {
		layout := spelled[c.spelled%len(spelled)]
		if at, err := time.Parse(layout, string(b)); err == nil {
			if !strings.Contains(layout, "07") {
				at = c.local(at)
			}
			c.at = at.UTC()
			return true
		}
		c.spelled++
	}
	return false
}

// local returns the time at which clocks in c.zone show wall. wall is given in UTC. If clocks show it twice, local
// returns the time that is nearer to the last one; the first one, if both are equally near.
func (c *clock) local(wall time.Time) time.Time {
	if c.zone == time.UTC {
		return wall
	}
	all := wallclock.Times(wall, c.zone)
	c.twice = len(all) == 2
	switch {
	case len(all) == 0: // clocks skip this time when they are set forward
		return time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(),
			wall.Second(), wall.Nanosecond(), c.zone).UTC()
	case c.twice && all[1].Sub(c.at).Abs() < all[0].Sub(c.at).Abs():
		return all[1]
	}
	return all[0]
}

// twoDigits parses two digits. It returns a negative number for anything else.
func twoDigits(b []byte) int {
	_ = b[1]
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}

// Units of times and durations. unknown is the unit of a key that does not determine it.
const (
	nanoseconds  = time.Nanosecond
	microseconds = time.Microsecond
	milliseconds = time.Millisecond
	seconds      = time.Second
	unknown      = time.Duration(0)
)

// decimal parses a number in a unit, to the nanosecond: digits with or without a fraction. A number with an exponent,
// which JSON allows for short durations, has the precision of a float64. ok is false for anything else, and for a
// number that overflows d.
func decimal(b []byte, unit time.Duration) (d time.Duration, ok bool) {
	var whole, fraction int64
	const most = int64(1e9) // a fraction has nanoseconds at most
	point, scale := false, int64(1)
	for i, c := range b {
		digit := int64(c - '0')
		switch {
		case c == '.' && i > 0 && i+1 < len(b) && !point:
			point = true
		case !isDigit(c) || whole > (math.MaxInt64-9)/10:
			f, err := strconv.ParseFloat(string(b), 64)
			f *= float64(unit)
			return time.Duration(f), err == nil && isDigit(b[0]) && f < math.MaxInt64
		case !point:
			whole = whole*10 + digit
		case scale < most:
			fraction, scale = fraction*10+digit, scale*10
		}
	}
	d = time.Duration(whole)*unit + time.Duration(fraction)*unit/time.Duration(scale)
	return d, len(b) > 0 && whole <= math.MaxInt64/int64(unit) && d >= 0
}

// parseDuration parses a whole field: a number in a unit, or a duration as Go writes it (1m2.5s). An empty field and
// "-" are valid, but has is false for them. A negative duration becomes 0; servers log one when their clock is set
// back.
func parseDuration(b []byte, unit time.Duration) (d time.Duration, has, ok bool) {
	if len(b) == 0 || string(b) == "-" {
		return 0, false, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' { // HAProxy writes + if the call continues after the line
		b = b[1:]
	}
	if d, ok = decimal(b, unit); !ok && len(b) > 0 && isDigit(b[0]) {
		var err error
		d, err = time.ParseDuration(string(b))
		ok = err == nil
	}
	if !ok {
		return 0, false, false
	}
	if negative {
		d = 0
	}
	return d, true, true
}

// leadingDigits returns the number of digits at the beginning of b.
func leadingDigits(b []byte) (n int) {
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

// isDigit reports whether a byte is a digit. The subtraction turns bytes below the digits into large numbers, so one
// comparison is enough.
func isDigit(c byte) bool { return c-'0' <= 9 }
