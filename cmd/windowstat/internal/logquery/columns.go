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

// Column is a column of numbers. All formats have the same columns.
type Column struct {
	name  string // in --where and --by
	key   string // in JSON and CSV
	title string // in a table
	adds  bool   // values are added up over seconds
	time  bool   // values are in nanoseconds
	value func(*metriclog.Row) int64
}

// columns has the columns of all formats, in their order.
var columns = []Column{
	{"pass", "pass", "pass", true, false, func(r *metriclog.Row) int64 { return r.Pass }},
	{"block", "block", "block", true, false, func(r *metriclog.Row) int64 { return r.Block }},
	{"complete", "complete", "complete", true, false, func(r *metriclog.Row) int64 { return r.Success }},
	{"exception", "exception", "exception", true, false, func(r *metriclog.Row) int64 { return r.Exception }},
	{"occupied_pass", "occupied_pass", "occupied", true, false, func(r *metriclog.Row) int64 { return r.OccupiedPass }},
	{
		"in_flight_max",
		"in_flight_max",
		"in flight",
		false,
		false,
		func(r *metriclog.Row) int64 { return r.Concurrency },
	},
	{"rt_avg", "rt_avg_seconds", "rt ms", false, true, func(r *metriclog.Row) int64 { return int64(r.RT) }},
}

// append appends the value of a row in the syntax of JSON and CSV.
func (c *Column) append(b []byte, r *metriclog.Row) []byte {
	if v := c.value(r); c.time {
		return strconv.AppendFloat(b, time.Duration(v).Seconds(), 'f', -1, 64)
	} else {
		return strconv.AppendInt(b, v, 10)
	}
}

// parseColumn returns the column with a name. With adds, the column must be additive.
func parseColumn(name string, adds bool) (*Column, error) {
	for i := range columns {
		if c := &columns[i]; c.name == name && (c.adds || !adds) {
			return c, nil
		}
	}
	what := "columns"
	if adds {
		what = "columns that add up"
	}
	return nil, fmt.Errorf("%q is not one of the %s: %s", name, what, ColumnNames(adds))
}

// ParseBy returns the additive column with a name.
func ParseBy(name string) (*Column, error) { return parseColumn(name, true) }

// ColumnNames returns the names of columns. With adds, it returns only the names of additive columns.
func ColumnNames(adds bool) string {
	var names []string
	for _, c := range columns {
		if c.adds || !adds {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ", ")
}

// WhereHelp describes the syntax of a condition.
const WhereHelp = "a column, one of > >= < <= = !=, and a number, such as block>0, or a duration, such as rt_avg>100ms"

// condition matches a column, an operator and a value.
var condition = regexp.MustCompile(`^\s*([^<>=!\s]+)\s*(>=|<=|!=|>|<|=)\s*(.*?)\s*$`)

// operators has the results of [cmp.Compare] that satisfy an operator.
var operators = map[string][]int{">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}, "=": {0}, "!=": {-1, 1}}

// Condition is a condition on a row.
type Condition struct {
	text  string
	meets func(*metriclog.Row) bool
}

// ParseCondition parses a condition, see [WhereHelp].
func ParseCondition(text string) (Condition, error) {
	m := condition.FindStringSubmatch(text)
	if m == nil {
		return Condition{}, fmt.Errorf("%q is not %s", text, WhereHelp)
	}
	c, err := parseColumn(m[1], false)
	if err != nil {
		return Condition{}, err
	}
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
