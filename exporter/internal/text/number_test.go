package text

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// want formats a number with strconv; integers have no exponent.
func want(v float64, float bool) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		s := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
		if v < 0 {
			s = "-" + s
		}
		if float {
			s += ".0"
		}
		return s
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Numbers have the shortest text with the same value, for both ways to format them.
func TestNumbersMatchStrconv(t *testing.T) {
	check := func(v float64) {
		t.Helper()
		for _, float := range []bool{false, true} {
			if got := string(number(nil, v, float)); got != want(v, float) {
				t.Fatalf("%v is %s, want %s", v, got, want(v, float))
			}
		}
	}
	for _, v := range []float64{
		0, math.Copysign(0, -1), 1, 9, 10, 99, 100, 1 << 53, -1, 1e-4, 1e-4 - 1e-9, 9.9999e-05, 0.1, 0.5,
		999999.999999999, 999999.9999999999, 1e6 + 0.5,
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1 + 0.2, 1e300,
	} {
		check(v)
		check(math.Nextafter(v, 0))
		check(math.Nextafter(v, math.Inf(1)))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		ns := time.Duration(random.Int64() >> random.IntN(63))
		check(ns.Seconds())
		check(-ns.Seconds())
		check(math.Nextafter(ns.Seconds(), math.Inf(1)))
		check(random.NormFloat64())
		check(math.Float64frombits(random.Uint64()))
	}
}
