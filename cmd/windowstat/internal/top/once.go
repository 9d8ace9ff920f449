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

// Once writes the last finished second as text: a line for the total and for every resource, columns separated by tabs, below
// a line with their names. The columns are the Unix time of the second; calls that passed, were blocked, failed; the mean
// and the p99 of response times in milliseconds; how many calls were in flight when the second ended; the most that passed
// in any sliding second of the last minute; the kind of the line; and the resource, escaped as in a Go string.
//
// The total comes first, whatever the filter. It has no resource, and its kind is inbound, or where nothing is inbound sum,
// of all resources, with every call below another one counted again. The other lines have the kind resource. An unknown value is "-", such as the response
// time if no call ended.
func Once(ctx context.Context, w io.Writer, e *Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	r := reader{endpoint: e, minute: []metric{peak}} // all other columns are about the last second
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
	fmt.Fprintln(out, "\tkind\tresource")
	write := func(l *line, kind, resource string) {
		if l.stale {
			return
		}
		fmt.Fprintf(out, "%d", l.second.unix)
		for _, c := range columns[1:] {
			fmt.Fprintf(out, "\t%s", c.write(&l.second))
		}
		fmt.Fprintf(out, "\t%s\t%s\n", kind, resource)
	}
	if total := b.total(); len(b.rows) > 0 || b.inbound != nil {
		write(&total, total.row.shown, "")
	}
	for _, l := range b.table(by, o.Filter) {
		write(&l, kindResource, l.row.shown)
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
