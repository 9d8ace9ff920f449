package accesslog

import (
	"math"
	"strconv"
	"time"
)

// Units of times and durations.
const (
	nanoseconds  = time.Nanosecond
	microseconds = time.Microsecond
	milliseconds = time.Millisecond
	seconds      = time.Second
	unknown      = time.Duration(0)
)

// decimal parses a number in a unit, to the nanosecond: digits with or without a fraction. Numbers with an exponent, as JSON has them
// for short durations, are as exact as a float64 is. It reports false for anything else, and if the number is too large.
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

// parseDuration parses a whole field: a number in a unit, or a duration as Go writes it (1m2.5s). An empty field and "-" have
// no duration. A negative one, from a clock that was set back, is 0.
func parseDuration(b []byte, unit time.Duration) (d time.Duration, has, ok bool) {
	if len(b) == 0 || string(b) == "-" {
		return 0, false, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' { // HAProxy's of a call that went on
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

// leadingDigits returns how many digits b begins with.
func leadingDigits(b []byte) (n int) {
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

// isDigit reports whether a byte is a digit. It is one comparison, as bytes below the digits become large ones.
func isDigit(c byte) bool { return c-'0' <= 9 }
