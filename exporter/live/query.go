package live

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// query is the content that a viewer requests: a page of the table, and the total or one resource. Clients may send
// anything; parseQuery accepts only valid queries.
type query struct {
	sortBy        string  // parameter sort: a column, byName, byPeak or byTrouble
	reverse       bool    // parameter up: the smallest value first, or the last name
	search        string  // in lower case
	offset        int     // parameter from: the number of rows before the page
	pinned        []int64 // parameter held: numbers of the resources that come first
	rangeFirst    int64   // parameter range: Unix time of the table's first second, or 0 for the last sealed second
	rangeEnd      int64   // Unix time after the table's last second, or 0
	totalSeconds  int64   // parameter past: requested history of the total
	resourceName  string  // parameter resource: the open resource, or ""
	resourceUntil int64   // parameter had: Unix time of the last second of the open resource that the viewer has
}

const (
	maxOffset = 1_000_000_000
	maxSearch = 1000 // bytes; names are shorter
)

// parseQuery parses the parameters of a request. The error names each invalid parameter.
func (f *feed) parseQuery(r *http.Request) (q query, err error) {
	values := r.URL.Query()
	q.sortBy = cmp.Or(values.Get("sort"), byTrouble)
	q.search = strings.ToLower(values.Get("search"))
	q.resourceName = values.Get("resource")
	var errs []error
	invalid := func(name, allowed string, args ...any) {
		allowed = fmt.Sprintf(allowed, args...)
		errs = append(errs, fmt.Errorf("invalid %s %.50q; must be %s", name, values.Get(name), allowed))
	}
	// Each parameter is bounded here. No later code checks it again.
	integer := func(name string, least, most, otherwise int64) int64 {
		if !values.Has(name) {
			return otherwise
		}
		n, err := strconv.ParseInt(values.Get(name), 10, 64)
		if err != nil || n < least || n > most {
			invalid(name, "%d to %d", least, most)
		}
		return n
	}
	q.offset = int(integer("from", 0, maxOffset, 0))
	q.totalSeconds = integer("past", 1, keptSeconds, keptSeconds)
	q.resourceUntil = integer("had", math.MinInt64, math.MaxInt64, 0)
	if all := slices.Concat([]string{byTrouble, byName, byPeak}, f.columns.names); !slices.Contains(all, q.sortBy) {
		invalid("sort", "one of %s", strings.Join(all, ", "))
	}
	if q.reverse, err = strconv.ParseBool(cmp.Or(values.Get("up"), "false")); err != nil {
		invalid("up", "true or false")
	}
	if len(q.search) > maxSearch {
		invalid("search", "at most %d bytes", maxSearch)
	}
	if text := values.Get("range"); text != "" {
		if q.rangeFirst, q.rangeEnd, err = parseRange(text); err != nil {
			invalid("range", "%v", err)
		}
	}
	if held := values.Get("held"); held != "" {
		for number := range strings.SplitSeq(held, ".") {
			n, err := strconv.ParseInt(number, 10, 64)
			if q.pinned = append(q.pinned, n); err != nil || len(q.pinned) > f.pageRows {
				invalid("held", "up to %d numbers, separated by dots", f.pageRows)
				break
			}
		}
	}
	return q, errors.Join(errs...)
}

// parseRange parses the parameter range, which must have the layout that fmt prints. The error describes a valid range.
func parseRange(text string) (first, end int64, err error) {
	_, err = fmt.Sscanf(text, "%d-%d", &first, &end)
	n := end - first
	if err != nil || fmt.Sprintf("%d-%d", first, end) != text || first < 1 || n < 1 || n > keptSeconds {
		const layout = "FIRST-END in Unix time, END after the last second, at most %d seconds"
		return first, end, fmt.Errorf(layout, keptSeconds)
	}
	return first, end, nil
}

// position is the part of the total that a viewer has: the seconds from first to last, in Unix time. The epoch
// identifies the process and the kind of total, inbound or background.
type position struct{ epoch, first, last int64 }

// String returns the position in the layout of event IDs and of the parameter after.
func (p position) String() string { return fmt.Sprintf("%d-%d-%d", p.epoch, p.first, p.last) }

// MarshalText returns String as bytes.
func (p position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// parsePosition parses the viewer's position: the header Last-Event-ID, or else the parameter after. A browser sends
// the header when it resumes a stream. It then also has the seconds of the open resource up to the position, so
// parsePosition sets q.resourceUntil.
func parsePosition(r *http.Request, q *query) (p position, err error) {
	id := r.Header.Get("Last-Event-ID")
	resumed := id != ""
	if id = cmp.Or(id, r.URL.Query().Get("after")); id == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(id, "%d-%d-%d", &p.epoch, &p.first, &p.last); err != nil || p.String() != id {
		return p, fmt.Errorf("invalid position %.50q; must be the ID of an event", id)
	}
	if resumed {
		q.resourceUntil = p.last
	}
	return p, nil
}
