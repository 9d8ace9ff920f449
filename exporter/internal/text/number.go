package text

import (
	"math"
	"strconv"
)

// number appends a value, an integer with a decimal point if float says so.
func number(b []byte, v float64, float bool) []byte {
	if i := int64(v); float64(i) == v && i < 1<<53 && i > -1<<53 {
		b = strconv.AppendInt(b, i, 10)
		if float {
			b = append(b, ".0"...)
		}
		return b
	}
	// Nearly all others are times, whole nanoseconds. With no more than 15 digits those are the shortest decimal for the
	// value, so they need not be looked for.
	if v >= 1e-4 && v < 1e6 {
		if ns := int64(v*1e9 + 0.5); float64(ns)/1e9 == v {
			b = strconv.AppendInt(b, ns/1e9, 10)
			point := len(b)
			b = strconv.AppendInt(b, 1e9+ns%1e9, 10)
			b[point] = '.'
			for b[len(b)-1] == '0' {
				b = b[:len(b)-1]
			}
			return b
		}
	}
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
