package top

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/gdamore/tcell/v2"
)

// metric identifies a value of a second.
type metric int

// The metrics. A target reads their past in this order.
const (
	peak metric = iota
	pass
	block
	exception
	complete
	rtSum
	rtP99
	inFlight
	metrics // number of metrics
)

// onPage has the names of the metrics on the per-second page, without their prefix.
var onPage = [metrics]string{
	peak: "pass_peak", pass: "pass", block: "block", exception: "exception", complete: "complete",
	rtSum: "rt_sum_seconds", rtP99: "rt_p99_seconds", inFlight: "in_flight_avg",
}

// values has the values of a resource in a second. Unknown values are NaN.
type values [metrics]float64

// unknown has the values of an unknown second.
var unknown = values(slices.Repeat([]float64{math.NaN()}, int(metrics)))

// whole adds the values that the page omits for an idle resource. The page then sends only the passes. They are 0, and
// all other counts are 0 as well.
//
// Callers must pass the values of a row that exists; unknown stays for seconds without a row. A row with passes, or
// with any value besides passes, is complete and is returned unchanged.
func (v values) whole() values {
	for m, x := range v {
		if metric(m) == pass && x != 0 || metric(m) != pass && !math.IsNaN(x) {
			return v
		}
	}
	return values{rtP99: math.NaN()}
}

// add adds the values of another process in the same second. A value that is unknown for one of them is unknown for
// both. Peaks and quantiles do not add up, so add keeps the higher one.
func (v *values) add(other values) {
	for m, x := range other {
		switch metric(m) {
		case peak, rtP99:
			v[m] = highest(v[m], x)
		default:
			v[m] += x
		}
	}
}

// highest returns the higher value, or the known value if the other one is unknown.
//
// cmp.Compare orders NaN before all numbers, unlike the operator < and the built-in max, which returns NaN.
func highest(v, w float64) float64 { return slices.MaxFunc([]float64{v, w}, cmp.Compare) }

// column is a column of the table. The screen, the text of [Once], the help and the order of lines use it.
type column struct {
	name  string // in --sort
	text  string // in the text
	title string // on the screen
	width int    // on the screen, with a space before it
	value func(*line) float64
	show  func(float64) string // on the screen
	style tcell.Style          // on the screen, for values above 0
	unit  float64              // of the text
	about string               // meaning
}

// columns has all columns except the graph. The first one is the resource.
//
// The keys 1 to 8 select columns by this order, and [Once] writes its fields in it. Scripts depend on it, so new
// columns belong at the end.
var columns = []column{
	{
		name:  "resource",
		title: "RESOURCE",
		value: func(*line) float64 { return 0 },
		about: "the name; inbound is the total of the service, its inbound calls",
	},
	{
		name:  "pass",
		text:  "pass",
		title: "PASS/s",
		width: 7,
		value: value(pass),
		show:  number,
		unit:  1,
		about: "calls admitted in the second",
	},
	{
		name:  "block",
		text:  "block",
		title: "BLOCK/s",
		width: 8,
		value: value(block),
		show:  number,
		style: refused,
		unit:  1,
		about: "calls refused in the second",
	},
	{
		name:  "exception",
		text:  "exception",
		title: "EXC/s",
		width: 7,
		value: value(exception),
		show:  number,
		style: failed,
		unit:  1,
		about: "calls that ended with an error in the second",
	},
	{
		name:  "mean",
		text:  "rt_mean_ms",
		title: "RT",
		width: 7,
		value: (*line).mean,
		show:  duration,
		unit:  1e-3,
		about: "average response time of the calls that ended in the second",
	},
	{
		name:  "p99",
		text:  "rt_p99_ms",
		title: "P99",
		width: 7,
		value: value(rtP99),
		show:  duration,
		unit:  1e-3,
		about: "99% of them took no longer; known of the last minute",
	},
	{
		name:  "in_flight_avg",
		text:  "in_flight_avg",
		title: "FLIGHT",
		width: 7,
		value: value(inFlight),
		show:  number,
		unit:  1,
		about: "calls in flight on average: the time spent in calls, per second",
	},
	{
		name:  "peak",
		text:  "peak",
		title: "PEAK",
		width: 7,
		value: (*line).peak,
		show:  number,
		unit:  1,
		about: "most calls in any sliding second of the minute before",
	},
}

// value returns a function that reads a metric of a line.
func value(m metric) func(*line) float64 { return func(l *line) float64 { return l.values[m] } }

// none represents an unknown value.
const none = "-"

// number formats a number in at most five characters, or six if it is negative. It shows counts below ten thousand
// exactly.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return none
	case a > 0 && a < 0.005:
		return "<0.01" // 0.00 would look like no call
	case a < 9999.5 && (a >= 999.5 || v == math.Trunc(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return scaled(v, 1, "", "k", "M", "G", "T")
}

// scaled formats a number with three digits, in the first unit that makes it smaller than a thousand. Each unit is a
// thousand times the one before.
func scaled(v, unit float64, names ...string) string {
	for _, name := range names {
		// A number that rounds up to the next power of ten has one decimal less.
		for i, below := range [...]float64{9.995, 99.95, 999.5} {
			if math.Abs(v) < below*unit {
				return strconv.FormatFloat(v/unit, 'f', 2-i, 64) + name
			}
		}
		unit *= 1000
	}
	return "huge" // larger than any real count
}

// duration formats seconds in at most six characters.
func duration(v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case v < 0 || v >= 9_999_999:
		return "huge"
	case v == 0:
		return "0ns"
	case v < 999.5:
		return scaled(v, 1e-9, "ns", "µs", "ms", "s")
	}
	return number(v) + "s"
}

// exactly formats a number for programs, rounded to a thousandth.
//
// It has no exponent and no unit, so awk and spreadsheets can read it.
func exactly(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// graph returns a bar for each second. The busiest second has the highest bar. Without Unicode it uses ASCII
// characters.
//
// The scale is relative: graphs of two lines cannot be compared with each other. A second with few passes has the
// lowest visible bar, never the bar of 0, so that rare calls remain visible.
func graph(passes []float64, unicode bool) string {
	steps, most := []rune(" _.:-=+*#"), 0.0 // for unknown, zero and higher values
	if unicode {
		steps = []rune(" ▁▂▃▄▅▆▇█")
	}
	for _, v := range passes {
		most = highest(most, v)
	}
	out := make([]rune, len(passes))
	for i, v := range passes {
		switch {
		case math.IsNaN(v):
			out[i] = steps[0]
		case v <= 0:
			out[i] = steps[1]
		default:
			out[i] = steps[1+int(max(math.Ceil(v/most*float64(len(steps)-2)), 1))]
		}
	}
	return string(out)
}
