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

// query is what a viewer has open: a page of the table, and one resource or the total. It comes from a stranger.
type query struct {
	by         string  // what the table is sorted by: a column, byName, byPeak or byTrouble
	up         bool    // the least first; of names, the last
	search     string  // in lower case
	skip       int     // how many rows are before the page
	held       []int64 // numbers of resources that come first
	first, end int64   // Unix time of the seconds of the table, end being after the last; 0 for the present
	past       int64   // how many seconds of the total are wanted
	resource   string  // whose seconds are wanted beside those of the total, if not empty
	had        int64   // the last second of it that the viewer has, Unix time
}

const (
	maxFrom   = 1_000_000_000
	maxSearch = 1000 // bytes; names are shorter
)

// queryOf reads the parameters of a request. The error names each that is wrong.
func (f *feed) queryOf(r *http.Request) (q query, err error) {
	values := r.URL.Query()
	q.by, q.search, q.resource = cmp.Or(values.Get("sort"), byTrouble), strings.ToLower(values.Get("search")), values.Get("resource")
	var errs []error
	wrong := func(name, allowed string, args ...any) {
		errs = append(errs, fmt.Errorf("invalid %s %.50q; %s allowed", name, values.Get(name), fmt.Sprintf(allowed, args...)))
	}
	// Parameters are a stranger's, and each is bounded here: behind this function nobody checks one again.
	whole := func(name string, least, most, otherwise int64) int64 {
		if !values.Has(name) {
			return otherwise
		}
		n, err := strconv.ParseInt(values.Get(name), 10, 64)
		if err != nil || n < least || n > most {
			wrong(name, "%d to %d are", least, most)
		}
		return n
	}
	q.skip, q.past, q.had = int(whole("from", 0, maxFrom, 0)), whole("past", 1, keptSeconds, keptSeconds), whole("had", math.MinInt64, math.MaxInt64, 0)
	if all := slices.Concat([]string{byTrouble, byName, byPeak}, f.columns.names); !slices.Contains(all, q.by) {
		wrong("sort", "%s are", strings.Join(all, ", "))
	}
	if q.up, err = strconv.ParseBool(cmp.Or(values.Get("up"), "false")); err != nil {
		wrong("up", "true and false are")
	}
	if len(q.search) > maxSearch {
		wrong("search", "%d bytes are", maxSearch)
	}
	if only := values.Get("range"); only != "" {
		_, err := fmt.Sscanf(only, "%d-%d", &q.first, &q.end)
		if n := q.end - q.first; err != nil || fmt.Sprintf("%d-%d", q.first, q.end) != only || q.first < 1 || n < 1 || n > keptSeconds {
			wrong("range", "the Unix time of the first second and of the one after the last, at most %d seconds, are", keptSeconds)
		}
	}
	if held := values.Get("held"); held != "" {
		for number := range strings.SplitSeq(held, ".") {
			n, err := strconv.ParseInt(number, 10, 64)
			if q.held = append(q.held, n); err != nil || len(q.held) > f.rows {
				wrong("held", "up to %d numbers, a dot between two, are", f.rows)
				break
			}
		}
	}
	return q, errors.Join(errs...)
}

// position is what a viewer has: the seconds of the total from first to last, both Unix time, of an epoch.
type position struct{ epoch, first, last int64 }

// String returns the position as in event ids and parameters.
func (p position) String() string { return fmt.Sprintf("%d-%d-%d", p.epoch, p.first, p.last) }

// MarshalText is String.
func (p position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// positionOf reads the viewer's position: the header Last-Event-ID or the parameter after. A browser that sends the header has
// been sent the seconds of the resource that is open as well.
func positionOf(r *http.Request, q *query) (p position, err error) {
	id := r.Header.Get("Last-Event-ID")
	again := id != ""
	if id = cmp.Or(id, r.URL.Query().Get("after")); id == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(id, "%d-%d-%d", &p.epoch, &p.first, &p.last); err != nil || p.String() != id {
		return p, fmt.Errorf("invalid position %.50q; it must be the id of an event", id)
	}
	if again {
		q.had = p.last
	}
	return p, nil
}
