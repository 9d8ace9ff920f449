package accesslog

import (
	"math"
	"time"
)

// Units of times and durations, as powers of ten of a nanosecond.
const (
	nanoseconds  = 0
	microseconds = 3
	milliseconds = 6
	seconds      = 9
	unknown      = -1
)

// decimal parses the number at the beginning of b, digits with or without a fraction and an exponent, in a unit. It returns
// whole nanoseconds and the length of the number: 0 if there is none, or if it overflows.
func decimal(b []byte, unit int) (ns int64, n int) {
	const full = (math.MaxInt64 - 9) / 10 // further digits only count for the magnitude
	var mantissa int64
	exp := unit
	for ; n < len(b) && isDigit(b[n]); n++ {
		if mantissa < full {
			mantissa = mantissa*10 + int64(b[n]-'0')
		} else {
			exp++
		}
	}
	if n == 0 {
		return 0, 0
	}
	if n+1 < len(b) && b[n] == '.' && isDigit(b[n+1]) {
		for n++; n < len(b) && isDigit(b[n]); n++ {
			if mantissa < full {
				mantissa = mantissa*10 + int64(b[n]-'0')
				exp--
			}
		}
	}
	e, width := exponent(b[n:])
	exp, n = exp+e, n+width
	for ; exp > 0 && mantissa != 0; exp-- {
		if mantissa > math.MaxInt64/10 {
			return 0, 0
		}
		mantissa *= 10
	}
	for ; exp < 0 && mantissa != 0; exp++ {
		mantissa /= 10
	}
	return mantissa, n
}

// exponent parses e, an optional sign and digits, if b begins so.
func exponent(b []byte) (e, n int) {
	if len(b) < 2 || b[0]|0x20 != 'e' {
		return 0, 0
	}
	n = 1
	if b[1] == '+' || b[1] == '-' {
		n = 2
	}
	digits := n
	for ; n < len(b) && isDigit(b[n]); n++ {
		e = min(e*10+int(b[n]-'0'), 1000)
	}
	if n == digits {
		return 0, 0
	}
	if b[1] == '-' {
		e = -e
	}
	return e, n
}

// parseDuration parses a whole field: a number in a unit, or a duration as Go writes it (1m2.5s). An empty field and "-" have
// no duration. A negative one, from a clock that was set back, is 0.
func parseDuration(b []byte, unit int) (d time.Duration, has, ok bool) {
	if len(b) == 0 || string(b) == "-" {
		return 0, false, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' { // HAProxy's of a call that went on
		b = b[1:]
	}
	ns, n := decimal(b, unit)
	if n == 0 {
		return 0, false, false
	}
	if n < len(b) {
		spelled, err := time.ParseDuration(string(b))
		if err != nil || spelled < 0 {
			return 0, false, false
		}
		ns = int64(spelled)
	}
	if negative {
		ns = 0
	}
	return time.Duration(ns), true, true
}

// leadingDigits returns how many digits b begins with.
func leadingDigits(b []byte) (n int) {
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c-'0' <= 9 }
