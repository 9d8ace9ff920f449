package otlp

import (
	"bytes"
	"math"
	"strconv"
)

// value is the value of a field or of an attribute: text or a number. Other types are not read.
type value struct {
	text     []byte
	number   int64
	isNumber bool
}

// unreadable is the number of a value that is not an integer, such as 404.5 or "not found". No valid status or code has
// it.
const unreadable = math.MaxInt64

// fromDouble returns a double as a number.
func fromDouble(x float64) int64 {
	// Larger doubles have no fraction, but they are not statuses either.
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return unreadable // also NaN, because it is unequal to itself
	}
	return int64(x)
}

// integer returns the number in an attribute. It reports false for an empty attribute. Instrumentations write a status
// as an integer, as a double or as text. Text that is not a number is unreadable: the attribute exists, but its meaning
// is unknown.
func (v value) integer() (n int64, ok bool) {
	// ParseFloat accepts integers, too. It is exact for all statuses and codes.
	switch text := bytes.TrimSpace(v.text); {
	case v.isNumber:
		return v.number, true
	case len(text) == 0:
		return 0, false
	default:
		x, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return unreadable, true
		}
		return fromDouble(x), true
	}
}
