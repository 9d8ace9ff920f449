package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"
)

// Options configure the table. The zero value shows all resources, the busiest first.
type Options struct {
	// Sort is the name of a column: resource, pass, block, exception, mean, p99, in_flight_avg or peak; pass if empty.
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
	return order{}, fmt.Errorf("%q is not one of\n%s", o.Sort, columnNames())
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
	var all sync.WaitGroup
	targets, errs := make([]*target, len(endpoints)), make([]error, len(endpoints))
	for i, e := range endpoints {
		t := newTarget(e)
		t.reader.past, t.reader.window = []metric{peak}, minute // all other columns are about the last second
		targets[i] = t
		all.Go(func() {
			t.take(t.reader.read(ctx), time.Now())
			if t.state.err != nil {
				errs[i] = fmt.Errorf("%s cannot be read:\n%w", e, t.state.err)
			} else if t.left > 0 {
				errs[i] = fmt.Errorf("%s has too many resources", e)
			}
		})
	}
	all.Wait()
	err = errors.Join(errs...)
	if several := len(endpoints) > 1; several || err == nil {
		err = errors.Join(err, write(w, targets, several, by, o.Filter))
	}
	return err
}

// write writes the last second of each target.
func write(w io.Writer, targets []*target, several bool, by order, filter string) error {
	var first, others []line
	for _, t := range targets {
		if only := []*target{t}; t.state.err == nil {
			first = append(first, totals(only, t.newest, true)...)
			others = append(others, table(only, t.newest, true, by, filter)...)
		}
	}
	by.sort(others)
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "second")
	for _, c := range columns[1:] {
		fmt.Fprintf(out, "\t%s", c.heading())
	}
	target := func(name string) string {
		if !several {
			return ""
		}
		return "\t" + name
	}
	fmt.Fprintf(out, "\tkind%s\tresource\n", target("target"))
	for i, l := range append(first, others...) {
		if l.stale {
			continue
		}
		kind := kindResource
		if i < len(first) {
			kind = kindInbound
		}
		fmt.Fprint(out, l.second.unix)
		for _, c := range columns[1:] {
			fmt.Fprintf(out, "\t%s", c.write(&l.second))
		}
		name := l.shown
		if kind == kindInbound {
			name = ""
		}
		fmt.Fprintf(out, "\t%s%s\t%s\n", kind, target(l.target), name)
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
