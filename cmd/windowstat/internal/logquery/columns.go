package logquery

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Column is a column of numbers in a row of the log. All formats of the output have the same columns.
//
// A column that does not add up is a maximum or an average. --where accepts such a column, and --by refuses it.
type Column struct {
	// name is in flags and in the help.
	name string // as --where and --by call it
	// key of a count is the name of its per-second metric without the prefix. A duration has its unit in the key.
	key string // in JSON and CSV
	// title is short, because a table has many columns.
	title string // in a table
	// adds is false for in_flight_max and rt_avg: the sum of maxima or of averages has no meaning.
	adds bool // values of several seconds can be added
	time bool // values are in nanoseconds
	// value reads the column from a row. A row of sums has the same fields, so value works for both.
	value func(*metriclog.Row) int64
}

// columns has the columns in the order of the output.
var columns = []Column{
	{"pass", "pass", "pass", true, false, func(r *metriclog.Row) int64 { return r.Pass }},
	{"block", "block", "block", true, false, func(r *metriclog.Row) int64 { return r.Block }},
	{"complete", "complete", "complete", true, false, func(r *metriclog.Row) int64 { return r.Success }},
	{"exception", "exception", "exception", true, false, func(r *metriclog.Row) int64 { return r.Exception }},
	{"occupied_pass", "occupied_pass", "occupied", true, false, func(r *metriclog.Row) int64 { return r.OccupiedPass }},
	{
		"in_flight_max", "in_flight_max", "in flight", false, false,
		func(r *metriclog.Row) int64 { return r.Concurrency },
	},
	{"rt_avg", "rt_avg_seconds", "rt ms", false, true, func(r *metriclog.Row) int64 { return int64(r.RT) }},
}

// append appends the value of a row in the syntax of JSON and CSV. A time is in seconds.
func (c *Column) append(b []byte, r *metriclog.Row) []byte {
	if v := c.value(r); c.time {
		return strconv.AppendFloat(b, time.Duration(v).Seconds(), 'f', -1, 64)
	} else {
		return strconv.AppendInt(b, v, 10)
	}
}

// parseColumn returns the column with a name. If adds is true, it accepts only columns whose values can be added.
func parseColumn(name string, adds bool) (*Column, error) {
	for i := range columns {
		if c := &columns[i]; c.name == name && (c.adds || !adds) {
			return c, nil
		}
	}
	// The error lists the valid names, so the user need not open the help.
	what := "columns"
	if adds {
		what = "columns that add up"
	}
	return nil, fmt.Errorf("%q is not one of the %s: %s", name, what, ColumnNames(adds))
}

// ParseBy returns the column with a name. It accepts only columns whose values can be added.
func ParseBy(name string) (*Column, error) { return parseColumn(name, true) }

// ColumnNames returns the names of the columns, separated by commas. If adds is true, it returns only the names of
// columns whose values can be added.
func ColumnNames(adds bool) string {
	var names []string
	for _, c := range columns {
		if c.adds || !adds {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ", ")
}

// WhereHelp describes the syntax of a condition, for --help and for errors.
const WhereHelp = "a column, one of > >= < <= = !=, and a number, such as block>0, or a duration, such as rt_avg>100ms"

// condition matches the parts of a condition: the column, the operator, and the value.
// The longer operators precede the shorter ones: otherwise >= would be read as > before an invalid value.
var condition = regexp.MustCompile(`^\s*([^<>=!\s]+)\s*(>=|<=|!=|>|<|=)\s*(.*?)\s*$`)

// operators maps each operator to the results of [cmp.Compare] that satisfy it.
var operators = map[string][]int{">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}, "=": {0}, "!=": {-1, 1}}

// Condition is a condition on a row of one second.
type Condition struct {
	// text is the condition as the user wrote it, for messages about an empty result.
	text string
	// meets reads the row of one second. A condition on sums does not exist.
	meets func(*metriclog.Row) bool
}

// ParseCondition parses a condition, see [WhereHelp]. The value of a column of times is a duration.
func ParseCondition(text string) (Condition, error) {
	m := condition.FindStringSubmatch(text)
	if m == nil {
		return Condition{}, fmt.Errorf("%q is not %s", text, WhereHelp)
	}
	c, err := parseColumn(m[1], false)
	if err != nil {
		return Condition{}, err
	}
	// All columns are whole numbers, durations in nanoseconds included. One comparison of int64 is therefore enough.
	var want int64
	if c.time {
		d, err := time.ParseDuration(m[3])
		if err != nil {
			return Condition{}, fmt.Errorf("%q: %s is a duration, such as 100ms or 1.5s, not %q", text, c.name, m[3])
		}
		want = int64(d)
	} else if want, err = strconv.ParseInt(m[3], 10, 64); err != nil {
		return Condition{}, fmt.Errorf("%q: %s is a whole number, not %q", text, c.name, m[3])
	}
	results := operators[m[2]]
	return Condition{
		text,
		func(r *metriclog.Row) bool { return slices.Contains(results, cmp.Compare(c.value(r), want)) },
	}, nil
}
