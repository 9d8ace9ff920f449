package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Options configure the table. The zero value shows all resources, the busiest first.
type Options struct {
	// Sort is the name of a column: resource, pass, block, exception, mean, p99, in_flight or peak; pass if empty.
	Sort string
	// Filter selects the names that contain it.
	Filter string
}

// order returns the order of the table.
func (o Options) order() (order, error) {
	if o.Sort == "" {
		o.Sort = "pass"
	}
	for i, c := range columns {
		if c.name == o.Sort {
			return order{column: i}, nil
		}
	}
	return order{}, fmt.Errorf("%q is not one of %s", o.Sort, columnNames())
}

// Check reports what is wrong with the options.
func (o Options) Check() error {
	_, err := o.order()
	return err
}

// Once writes the last finished second of every resource as text: a line each, columns separated by tabs, below a line with
// their names. The columns are the Unix time of the second; calls that passed, were blocked, failed; the mean and the p99
// of response times in milliseconds; how many calls were in flight when the second ended; the most that passed in any
// sliding second of the last minute; and the resource, escaped as in a Go string. An unknown value is "-", such as the response
// time if no call ended.
func Once(ctx context.Context, w io.Writer, e *Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	r := reader{endpoint: e, minute: onPage[peak : peak+1]} // all other columns are about the last second
	a := r.read(ctx)
	if a.err != nil {
		return fmt.Errorf("%s cannot be read: %w", e, a.err)
	}
	b := newBoard()
	if b.add(a.samples, a.newest); b.left > 0 {
		return errors.New("there are too many resources")
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "second")
	for _, c := range columns[1:] {
		fmt.Fprintf(out, "\t%s", c.heading())
	}
	fmt.Fprintln(out, "\tresource")
	for _, l := range b.table(by, o.Filter) {
		if l.stale {
			continue
		}
		fmt.Fprintf(out, "%d", l.second.unix)
		for _, c := range columns[1:] {
			fmt.Fprintf(out, "\t%s", c.write(&l.second))
		}
		fmt.Fprintf(out, "\t%s\n", l.row.shown)
	}
	return out.Flush()
}

// exactly formats a number for programs, to a thousandth.
func exactly(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
