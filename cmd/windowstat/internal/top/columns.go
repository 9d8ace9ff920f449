package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// metric is one of the values of a second.
type metric int

const (
	pass metric = iota
	peak
	block
	exception
	complete
	rtSum
	rtP99
	inFlight
	metrics // how many there are
)

// shown are the columns of a second that are read for the table; their metrics are found by them.
var shown = [metrics]string{
	pass: "pass", peak: "pass_peak", block: "block", exception: "exception", complete: "complete", rtSum: "rt_sum", rtP99: "rt_p99",
	inFlight: "in_flight_avg",
}

// column is a column of the table.
type column struct {
	name  string // in --sort
	title string // on the screen
	width int    // there, with a space before it
	value func(*second) float64
	show  func(float64) string // for the screen
	about string               // what it means
}

// columns are all columns except the graph; the first is the resource.
var columns = []column{
	{name: "resource", title: "RESOURCE", about: "the name; inbound is the total of the service, its inbound calls"},
	{name: "pass", title: "PASS/s", width: 7, value: read(pass), show: number, about: "calls admitted in the second"},
	{name: "block", title: "BLOCK/s", width: 8, value: read(block), show: number, about: "calls refused in the second"},
	{name: "exception", title: "EXC/s", width: 7, value: read(exception), show: number, about: "calls that ended with an error in the second"},
	{name: "mean", title: "RT", width: 7, value: (*second).mean, show: duration, about: "average response time of the calls that ended in the second"},
	{name: "p99", title: "P99", width: 7, value: read(rtP99), show: duration, about: "99% of them took no longer; known of the last minute"},
	{name: "in_flight_avg", title: "FLIGHT", width: 7, value: read(inFlight), show: calls, about: "calls in flight on average: the time spent in calls, per second"},
	{name: "peak", title: "PEAK", width: 7, value: read(peak), show: number, about: "most calls in any sliding second of the minute before"},
}

func read(m metric) func(*second) float64 { return func(s *second) float64 { return s.values[m] } }

// heading is the name of the column in text, and write its value there. Times are in milliseconds.
func (c *column) heading() string {
	if c.time() {
		return "rt_" + c.name + "_ms"
	}
	return c.name
}

func (c *column) write(s *second) string {
	v := c.value(s)
	if c.time() {
		v *= 1000
	}
	return exactly(v)
}

// time reports whether the value is one, in seconds.
func (c *column) time() bool { return c.name == "mean" || c.name == "p99" }

// columnNames lists the values of --sort.
func columnNames() string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// none stands for an unknown value.
const none = "-"

// number formats a number in at most five characters, six if it is negative.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return none
	case a < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a < 999.5e12:
		return scaled(v)
	default: // beyond any real count
		return "huge"
	}
}

// calls formats an average number of calls.
func calls(v float64) string {
	if v > 0 && v < 999.5 {
		return three(v)
	}
	return number(v)
}

// scaled formats a number from a thousand on with three digits and a letter.
func scaled(v float64) string {
	unit := 0
	for v /= 1000; math.Abs(v) >= 999.5; v /= 1000 {
		unit++
	}
	return three(v) + "kMGT"[unit:unit+1]
}

// three formats a number below a thousand with three digits.
func three(v float64) string {
	switch a := math.Abs(v); {
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// duration formats seconds in at most six characters.
func duration(v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case v < 0 || v >= 9_999_999:
		return "huge"
	case v < 999.5e-9:
		return fmt.Sprintf("%.0fns", v*1e9)
	case v < 999.5e-6:
		return three(v*1e6) + "µs"
	case v < 999.5e-3:
		return three(v*1e3) + "ms"
	case v < 999.5:
		return three(v) + "s"
	}
	return number(v) + "s"
}

// bars are the steps of a graph: unknown, zero, and more.
var bars = []rune(" ▁▂▃▄▅▆▇█")

// plainBars are for terminals without UTF-8.
var plainBars = []rune(" _.:-=+*#")

// graph returns a bar for each second, in proportion to the busiest.
func graph(passes []float64, steps []rune) []rune {
	most := 0.0
	for _, v := range passes {
		if v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	out := make([]rune, len(passes))
	for i, v := range passes {
		switch {
		case math.IsNaN(v):
			out[i] = steps[0]
		case v <= 0:
			out[i] = steps[1]
		default:
			high := float64(len(steps) - 2)
			out[i] = steps[1+int(max(math.Ceil(min(v/most, 1)*high), 1))]
		}
	}
	return out
}
