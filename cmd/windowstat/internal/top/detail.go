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

// detail holds the data that the per-second page lacks, from the live page: the trouble of the service, and of the
// selected resource the limits, the oldest calls in flight, and the calls since the start by reason, origin, caller and
// code.
//
// The exported fields have the names of the JSON object of the live page. The unexported fields describe the request.
type detail struct {
	resource string
	err      error

	Now     int64 // milliseconds of Unix time
	Alarm   alarm
	Details map[string][]share
}

// alarm describes the trouble of a service. The live page finds, ranks and words it; top only prints it.
type alarm struct {
	Before, After string // parts of a sentence about the worst resource; the time Since belongs between them
	Since         int64  // Unix time
	List          []troubled
}

// troubled is a resource in trouble.
type troubled struct{ Resource, Words string }

// share is the part of a resource's calls with one reason, origin, caller or code. It also represents a limit, with the
// limit in Pass, and a group of calls in flight.
//
//	list      Name and its number         other fields
//	limits    the limit and its value
//	blocks    reason, refused calls
//	origins   origin, its calls
//	callers   caller, its calls
//	codes     code, its calls
//	running                               Count, Origin, Entrance, Traces, Since
type share struct {
	Name                  string
	Pass, Block, Complete int64

	Origin, Entrance string
	Count            int64
	Traces           []string
	Since            int64 // start of the oldest call, in milliseconds of Unix time
}

// detailTimeout limits the request for details, because the seconds wait for it.
const detailTimeout = time.Second / 2

// detail requests the details from the live page, which package exporter serves next to the metrics page. Without a
// live page, top shows only the seconds. The resource may be [inbound], which has no details.
func (e *Endpoint) detail(ctx context.Context, resource string) (d detail) {
	ctx, cancel := context.WithTimeoutCause(ctx, detailTimeout, fmt.Errorf("no response within %v", detailTimeout))
	defer cancel()
	d.resource = resource
	// The parameters select seconds that top already has and a table from long ago, which cost nothing.
	q := url.Values{"past": {"1"}, "had": {"9999999999"}, "range": {"1-2"}}
	if resource != inbound {
		q.Set("resource", resource)
	}
	// The page is …/metrics/seconds, so ../../live is next to …/metrics. The limit of 4 MiB bounds the memory for a
	// response that is not from a live page.
	d.err = e.get(ctx, e.page.JoinPath("../../live/seconds"), q, "application/json", func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, 4<<20)).Decode(&d)
	})
	return d
}

// maxTroubled is the number of resources in trouble that the screen lists.
const maxTroubled = 5

// lines returns the sentence about the worst resource, and a line for each resource in trouble. The texts are cleaned.
func (a *alarm) lines() (list []string) {
	if a.Before == "" {
		return nil
	}
	list = append(list, clean(a.Before)+clock(a.Since)+clean(a.After))
	for i, x := range a.List {
		if i == maxTroubled {
			return append(list, fmt.Sprintf("  and %d more", len(a.List)-i))
		}
		list = append(list, "  "+clean(x.Resource)+"  "+clean(x.Words))
	}
	return list
}

// names reports whether the resource is in trouble.
func (a *alarm) names(resource string) bool {
	return slices.ContainsFunc(a.List, func(x troubled) bool { return x.Resource == resource })
}

// lists are the lists of the details in the order of the screen, with their titles. Empty lists are left out.
var lists = [][2]string{
	{"limits", "limits"},
	{"blocks", "refused since the start"},
	{"origins", "origins"},
	{"callers", "callers"},
	{"codes", "codes"},
	{"running", "in flight for longest"},
}

// maxGroups is the number of groups of calls in flight that the screen shows.
const maxGroups = 5

// describe returns the details of a resource, the largest numbers first. It adds up the calls of the targets. Limits do
// not add up, so it lists all of them. The oldest calls in flight are listed with number, origin, entrance and traces.
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
		// Sum by name, so the same origin or code of several targets is one part. A limit gets 0, which prints no
		// number after its name; calls in flight get their age, which only sorts them.
		numbers := map[string]int64{}
		for _, d := range details {
			for _, s := range d.Details[list[0]] {
				switch list[0] {
				case "limits":
					numbers[fmt.Sprint(s.Name, " ", s.Pass)] = 0
				case "running":
					age := time.Duration(d.Now-s.Since) * time.Millisecond
					calls := fmt.Sprintf("%d for %v", max(s.Count, 1), age.Round(time.Second/10))
					words := strings.Fields(
						strings.Join(append([]string{calls, s.Origin, s.Entrance}, s.Traces...), " "),
					)
					numbers[strings.Join(words, " ")] = int64(age)
				default:
					numbers[cmp.Or(s.Name, "(none)")] += s.Pass + s.Block + s.Complete
				}
			}
		}
		names := slices.SortedFunc(maps.Keys(numbers), func(x, y string) int {
			return cmp.Or(cmp.Compare(numbers[y], numbers[x]), cmp.Compare(x, y))
		})
		var parts []string
		for _, name := range names {
			switch part := clean(name); {
			case list[0] == "running" && len(parts) == maxGroups:
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
