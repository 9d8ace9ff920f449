package top

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// kindInbound is the kind of the total, and its name on the screen.
const kindInbound = "inbound"

// Options configure the table. The zero value shows all resources, the busiest first.
type Options struct {
	// Sort is the name of a column: resource, pass, block, exception, mean, p99, in_flight_avg or peak; pass if empty.
	Sort string
	// Filter selects the names that contain it.
	Filter string
}

// order returns the order of the table.
func (o Options) order() (order, error) {
	var names []string
	for i, c := range columns {
		if c.name == cmp.Or(o.Sort, "pass") {
			return order{column: i}, nil
		}
		names = append(names, c.name)
	}
	return order{}, fmt.Errorf("%q is not one of\n%s", o.Sort, strings.Join(names, ", "))
}

// Check reports what is wrong with the options.
func (o Options) Check() error {
	_, err := o.order()
	return err
}

// Once writes the last finished second as text: a line for the total and for every resource, columns separated by tabs, below
// a line with their names. The columns are the Unix time of the second; calls that passed, were blocked, failed; the mean
// and the p99 of response times in milliseconds; how many calls were in flight on average; the most that passed
// in any sliding second of the last minute; the kind of the line; with several endpoints the host and port; and the resource,
// escaped as in a Go string.
//
// The total comes first, whatever the filter: its kind is inbound, and it has no resource. Where nothing is inbound there is none. The
// other lines have the kind resource. An unknown value is "-", such as the response time if no call ended. Several endpoints are
// not added up, and each may have another last second. If one cannot be read, the others are written, and it is the error.
func Once(ctx context.Context, w io.Writer, endpoints []*Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	several, all, errs := len(endpoints) > 1, table{}, []error(nil)
	for _, e := range endpoints {
		t := newTarget(e, minute)
		if t.take(t.reader.read(ctx, inbound), time.Now()); t.state.err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read:\n%w", e, t.state.err))
			continue
		}
		x := newTable([]*target{t}, t.newest, several, by, o.Filter)
		all.totals, all.lines = append(all.totals, x.totals...), append(all.lines, x.lines...)
	}
	by.sort(all.lines)
	if several || len(errs) == 0 {
		errs = append(errs, all.write(w, several))
	}
	return errors.Join(errs...)
}

// write writes the table as text, with a column of targets if there are several.
func (x *table) write(w io.Writer, several bool) error {
	out := bufio.NewWriter(w)
	row := func(second, kind, target, name string, of func(*column) string) {
		cells := []string{second}
		for i := range columns[1:] {
			cells = append(cells, of(&columns[1+i]))
		}
		if cells = append(cells, kind); several {
			cells = append(cells, target)
		}
		fmt.Fprintln(out, strings.Join(append(cells, name), "\t"))
	}
	row("second", "kind", "target", "resource", func(c *column) string { return c.text })
	for _, l := range append(x.totals, x.lines...) {
		kind, name := "resource", l.shown
		if l.name == inbound {
			kind, name = kindInbound, ""
		}
		row(strconv.FormatInt(l.unix, 10), kind, l.target, name, func(c *column) string { return exactly(c.value(&l) / c.unit) })
	}
	return out.Flush()
}
