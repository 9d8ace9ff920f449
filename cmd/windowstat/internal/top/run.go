// Package top shows the seconds of services in a terminal ([Run]) or as text ([Once]).
//
// It requests the last second from the per-second page of a service. At the beginning it also requests the ten minutes
// before, and later the seconds that it missed. With ten thousand resources it keeps only a minute. It uses no cursor,
// so it takes nothing from Prometheus or VictoriaMetrics. The trouble of the service, and the limits and origins of a
// selected resource, come from the live page next to the metrics page. All data of a service is bounded, and cleaned
// before it reaches the terminal.
//
// # Terms
//
// An [Endpoint] is the address of a service. A target is an endpoint together with the seconds that top has read from
// it. A resource is a name under which a service counts calls, such as a route; inbound is the total of the calls that
// reach the service from outside. A sealed second is a second whose numbers no longer change.
//
// # Files
//
//	run.go       Run, Once and their options
//	ui.go        keys, and the state that they change
//	screen.go    one frame of the terminal
//	table.go     lines, their order and their sums
//	columns.go   metrics, columns and the layout of numbers
//	target.go    history of a target
//	reader.go    requests for seconds, and their parser
//	detail.go    requests to the live page
//	endpoint.go  addresses, HTTP and error messages
package top

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
)

// Run shows at least one endpoint on a screen until the user quits or ctx ends. The screen must not be initialized. Run
// restores the terminal, and all its goroutines have ended when it returns. A failing endpoint is not an error: Run
// continues to poll it.
//
// One goroutine, the caller of Run, owns the screen, the ui and the targets, so none of them has a lock. Keys arrive
// through the channel events. Each target has a goroutine while a request is running; the goroutine sends a function
// through the channel results, and the caller of Run calls the function to apply the result.
func Run(ctx context.Context, screen tcell.Screen, endpoints []*Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	if err := screen.Init(); err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer screen.Fini() // before all other deferred calls, also after a panic
	events := make(chan tcell.Event, 100)
	all.Go(func() { screen.ChannelEvents(events, ctx.Done()) })

	// Only Run shows the trouble of a service, so only its targets request the live page for it.
	u := &ui{order: by, filter: o.Filter}
	for _, e := range endpoints {
		t := newTarget(e, maxKept)
		t.alarms = true
		u.targets = append(u.targets, t)
	}
	// Each target sends at most one result at a time, so a buffer for all targets never blocks a goroutine that sends.
	// The goroutines can therefore end after Run has stopped receiving.
	results := make(chan func(), len(endpoints))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, open := <-events:
			if !open {
				return nil
			}
			if k, is := ev.(*tcell.EventKey); is && u.key(k) {
				return nil
			}
		case <-timer.C:
			now := time.Now()
			// Request right after the next second ends, so the screen shows a second as soon as the service has sealed
			// it.
			timer.Reset(now.Truncate(time.Second).Add(time.Second + pollDelay).Sub(now))
			selected := u.selected.name
			for _, t := range u.targets {
				if !t.polling {
					t.polling = true
					all.Go(func() { results <- poll(ctx, t, selected) })
				}
			}
		case take := <-results:
			take()
		}
		// Draw once after a burst of keys or results: a frame between two of them would be replaced before the user
		// sees it.
		if len(events)+len(results) == 0 {
			u.draw(screen, time.Now())
		}
	}
}

// pollDelay is the time between the end of a second and its request, if the clocks agree. If they do not, the second
// appears later, by less than a second.
const pollDelay = 100 * time.Millisecond

// poll reads a target. It returns a function that applies the result, for the goroutine that draws. If poll panics,
// that function panics instead, because only the goroutine that draws can restore the terminal.
func poll(ctx context.Context, t *target, selected string) (take func()) {
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("%v\n%s", v, debug.Stack())
			take = func() { panic(text) }
		}
	}()
	a := t.read(ctx, selected)
	return func() {
		t.polling = false
		t.take(a, time.Now())
	}
}

// kindInbound is the kind of the total, and its name on the screen.
const kindInbound = "inbound"

// Options configure the table. The zero value shows all resources, the busiest first.
type Options struct {
	// Sort is the name of a column: resource, pass, block, exception, mean, p99, in_flight_avg or peak; pass if empty.
	Sort string
	// Filter selects the names that contain it.
	Filter string
}

// order returns the order of the table, or an error for an unknown column.
//
// The column is an index into columns, in the order of the screen.
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

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	_, err := o.order()
	return err
}

// Once writes the last sealed second as text: a line for the total and for each resource. Tabs separate the columns,
// and the first line has their names. The columns are: the Unix time of the second; the passed, blocked and failed
// calls; the average and the p99 of the response times in milliseconds; the average number of calls in flight; the
// highest number of passes in any sliding second of the last minute; the kind of the line; with several endpoints the
// host and port; and the resource, escaped as in a Go string.
//
// The total has the kind inbound and no resource. It comes first and ignores the filter. A service without inbound
// calls has no total. The other lines have the kind resource. An unknown value is "-", such as the response time if no
// call ended. Endpoints are not added up, and each may have a different last second. If an endpoint cannot be read,
// Once writes the others and returns an error.
func Once(ctx context.Context, w io.Writer, endpoints []*Endpoint, o Options) error {
	by, err := o.order()
	if err != nil {
		return err
	}
	// Once needs no history except the minute before the second, from which the column peak takes its maximum.
	several, all, errs := len(endpoints) > 1, table{}, []error(nil)
	for _, e := range endpoints {
		t := newTarget(e, minute)
		if t.take(t.read(ctx, inbound), time.Now()); t.state.err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read:\n%w", e, t.state.err))
			continue
		}
		x := newTable([]*target{t}, t.newest, several, by, o.Filter)
		all.totals, all.lines = append(all.totals, x.totals...), append(all.lines, x.lines...)
	}
	by.sort(all.lines)
	// A script that reads a single endpoint gets either a table or an error. With several endpoints it gets the rows of
	// the endpoints that responded, and the error names the others.
	if several || len(errs) == 0 {
		errs = append(errs, all.write(w, several))
	}
	return errors.Join(errs...)
}

// write writes the table as text. With several targets it has a column for them.
func (x *table) write(w io.Writer, several bool) error {
	out := bufio.NewWriter(w)
	// The heading and the lines share row, so both have the same number of cells in the same order.
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
		row(
			strconv.FormatInt(l.unix, 10),
			kind,
			l.target,
			name,
			func(c *column) string { return exactly(c.value(&l) / c.unit) },
		)
	}
	return out.Flush()
}
