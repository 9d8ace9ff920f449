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
	inFlight: "in_flight",
}

// column is a column of the table.
type column struct {
	name  string // in --sort
	title string // on the screen
	width int    // there, with a space before it
	value func(*second) float64
	time  bool // the value is one, in seconds
}

// columns are all columns except the graph; the first is the resource.
var columns = []column{
	{name: "resource", title: "RESOURCE"},
	{name: "pass", title: "PASS/s", width: 7, value: read(pass)},
	{name: "block", title: "BLOCK/s", width: 8, value: read(block)},
	{name: "exception", title: "EXC/s", width: 7, value: read(exception)},
	{name: "mean", title: "RT", width: 7, value: (*second).mean, time: true},
	{name: "p99", title: "P99", width: 7, value: read(rtP99), time: true},
	{name: "in_flight", title: "FLIGHT", width: 7, value: read(inFlight)},
	{name: "peak", title: "PEAK", width: 7, value: read(peak)},
}

func read(m metric) func(*second) float64 { return func(s *second) float64 { return s.values[m] } }

// show formats the value for the screen.
func (c *column) show(s *second) string {
	if c.time {
		return duration(c.value(s))
	}
	return number(c.value(s))
}

// heading is the name of the column in text, and write its value there. Times are in milliseconds.
func (c *column) heading() string {
	if c.time {
		return "rt_" + c.name + "_ms"
	}
	return c.name
}

func (c *column) write(s *second) string {
	v := c.value(s)
	if c.time {
		v *= 1000
	}
	return exactly(v)
}

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
func graph(seconds []second, steps []rune) []rune {
	most := 0.0
	for i := range seconds {
		if v := seconds[i].values[pass]; v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	out := make([]rune, len(seconds))
	for i := range seconds {
		switch v := seconds[i].values[pass]; {
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
