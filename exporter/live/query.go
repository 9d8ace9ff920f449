package live

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// query is what a viewer has open: a page of the table, and one resource or the total. It comes from a stranger.
type query struct {
	table
	resource string // whose seconds are wanted beside those of the total, if not empty
}

// table is a page of the table of resources. Viewers with the same one share what is made for it.
type table struct {
	by     string // the column that it is sorted by: of the feed, byName or byPeak
	up     bool   // the least first; of names, the last
	search string // in lower case
	from   int    // how many rows are before the page
	held   string // numbers of resources that come first, a dot between two
}

// What the table is sorted by, beside the columns of the feed: the name, and the busiest second of the last minute.
const (
	byName = "name"
	byPeak = "peak"
)

const (
	maxFrom   = 1_000_000_000
	maxSearch = 1000 // bytes; names are shorter
)

// queryOf reads the parameters of a request. The error names each that is wrong.
func (f *feed) queryOf(r *http.Request) (q query, err error) {
	values := r.URL.Query()
	q.by, q.search, q.held, q.resource = cmp.Or(values.Get("sort"), "pass"), strings.ToLower(values.Get("search")), values.Get("held"), values.Get("resource")
	var errs []error
	if q.by != byName && q.by != byPeak && !slices.Contains(f.columns.names, q.by) {
		errs = append(errs, fmt.Errorf("invalid sort %.50q; %s, %s and %s are allowed", q.by, byName, byPeak, strings.Join(f.columns.names, ", ")))
	}
	if up := values.Get("up"); up != "" {
		if q.up, err = strconv.ParseBool(up); err != nil {
			errs = append(errs, fmt.Errorf("invalid up %.50q; true and false are allowed", up))
		}
	}
	if len(q.search) > maxSearch {
		errs = append(errs, fmt.Errorf("search has %d bytes; %d are allowed", len(q.search), maxSearch))
	}
	if from := values.Get("from"); from != "" {
		if q.from, err = strconv.Atoi(from); err != nil || q.from < 0 || q.from > maxFrom {
			errs = append(errs, fmt.Errorf("invalid from %.50q; 0 to %d are allowed", from, maxFrom))
		}
	}
	if _, err := numbers(q.held, f.rows); err != nil {
		errs = append(errs, err)
	}
	return q, errors.Join(errs...)
}

// numbers reads the numbers of resources that are held.
func numbers(held string, most int) (list []int64, err error) {
	for held != "" {
		var first string
		first, held, _ = strings.Cut(held, ".")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil || len(list) == most {
			return nil, fmt.Errorf("invalid held %.50q; up to %d numbers are allowed, a dot between two", first, most)
		}
		list = append(list, n)
	}
	return list, nil
}

// position is what a viewer has: the seconds of the total from first to last, both Unix time, and if it had the same query
// then, the second that its table shows, which otherwise is 0.
type position struct{ first, last, epoch, drawn int64 }

// String returns the position as in event ids and parameters.
func (p position) String() string {
	return fmt.Sprintf("%d-%d-%d-%d", p.first, p.last, p.epoch, p.drawn)
}

// positionOf reads the viewer's position: the header Last-Event-ID or the parameter after.
func positionOf(r *http.Request) (p position, err error) {
	id := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if id == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(id, "%d-%d-%d-%d", &p.first, &p.last, &p.epoch, &p.drawn); err != nil || p.String() != id {
		return p, fmt.Errorf("invalid position %.50q; it must be the id of an event", id)
	}
	return p, nil
}
