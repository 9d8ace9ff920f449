package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// detail is what the per-second page does not have of a resource: its limits, the calls in flight for longest, and calls since the start
// by reason, origin, caller and code. It comes from the live page.
type detail struct {
	resource string
	err      error

	Now     int64 // milliseconds of Unix time
	Details map[string][]share
}

// share is the part of a resource's calls with one reason, origin, caller or code; or a limit, which is in Pass; or a call in flight.
type share struct {
	Name                  string
	Pass, Block, Complete int64

	Origin, Entrance, Trace string
	Since                   int64 // milliseconds of Unix time
}

// detail asks the live page, which is beside the metrics page. The seconds do not wait for it long.
func (e *Endpoint) detail(ctx context.Context, resource string) (d detail) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Second/2, fmt.Errorf("no answer in half a second"))
	defer cancel()
	d.resource = resource
	// The live page is found by where the exporters put it, beside the metrics page. Where it is not, seconds are shown all the same.
	// Of seconds that it has had, and of a table long ago, which cost nothing.
	q := url.Values{"resource": {resource}, "past": {"1"}, "had": {"9999999999"}, "range": {"1-2"}}
	d.err = e.get(ctx, e.page.JoinPath("../../live/seconds"), q, "application/json", func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, 4<<20)).Decode(&d)
	})
	return d
}

// lists are what is shown of details, with their titles. Those that are empty are left out.
var lists = [][2]string{
	{"limits", "limits"},
	{"blocks", "refused since the start"},
	{"origins", "origins"},
	{"callers", "callers"},
	{"codes", "codes"},
	{"running", "in flight for longest"},
}

// mostCalls is how many calls in flight are shown.
const mostCalls = 5

// describe returns the details of a resource of some targets, the greatest first: calls added up; all limits, which do not add up; and the
// calls that have been in flight for longest, with origin, entrance and trace.
func describe(targets []*target, resource string) (text []string) {
	var details []detail
	for _, t := range targets {
		switch d := t.state.detail; {
		case d.err != nil:
			return []string{"limits, refusals, origins and codes: " + clean(d.err.Error())}
		case d.resource == resource:
			details = append(details, d)
		}
	}
	for _, list := range lists {
		numbers := map[string]int64{}
		for _, d := range details {
			for _, s := range d.Details[list[0]] {
				switch list[0] {
				case "limits":
					numbers[fmt.Sprint(s.Name, " ", s.Pass)] = 0
				case "running":
					age := time.Duration(d.Now-s.Since) * time.Millisecond
					words := strings.Fields(fmt.Sprint(age.Round(time.Second/10), " ", s.Origin, " ", s.Entrance, " ", s.Trace))
					numbers[strings.Join(words, " ")] = int64(age)
				default:
					numbers[cmp.Or(s.Name, "(none)")] += s.Pass + s.Block + s.Complete
				}
			}
		}
		names := slices.SortedFunc(maps.Keys(numbers), func(x, y string) int { return cmp.Or(cmp.Compare(numbers[y], numbers[x]), cmp.Compare(x, y)) })
		var parts []string
		for _, name := range names {
			switch part := clean(name); {
			case list[0] == "running" && len(parts) == mostCalls:
			case list[0] == "running" || numbers[name] == 0:
				parts = append(parts, part)
			default:
				parts = append(parts, fmt.Sprint(part, " ", numbers[name]))
			}
		}
		if len(parts) > 0 {
			text = append(text, list[1]+": "+strings.Join(parts, ", "))
		}
	}
	return text
}
