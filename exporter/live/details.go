package live

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// details describe one resource since the start of the process.
type details struct {
	Origins []subtotal     `json:"origins"`
	Callers []subtotal     `json:"callers"`
	Limits  []subtotal     `json:"limits"` // Pass is the count of the limit
	Blocks  []subtotal     `json:"blocks"`
	Codes   []subtotal     `json:"codes"`
	Running []runningCalls `json:"running"`
}

// subtotal counts the calls of a resource with one origin, caller, block reason or code.
type subtotal struct {
	Name     string `json:"name"`
	Pass     int64  `json:"pass,omitempty"`
	Block    int64  `json:"block,omitempty"`
	Complete int64  `json:"complete,omitempty"`
}

// readDetails reads the details of a resource as JSON, and the average age of its calls in flight. Without calls in
// flight the age is noDuration.
func (f *feed) readDetails(x *collector.Resource) (text json.RawMessage, age time.Duration) {
	d := details{ // with empty lists instead of nil, because the script expects arrays
		Origins: []subtotal{}, Callers: []subtotal{}, Limits: []subtotal{}, Blocks: []subtotal{}, Codes: []subtotal{},
		Running: f.groupRunning(x.Oldest(maxRunning)),
	}
	for name, v := range x.Origins() {
		d.Origins = append(d.Origins, subtotalOf(name, v))
	}
	for reason, n := range x.Blocks() {
		if n > 0 {
			d.Blocks = append(d.Blocks, subtotal{Name: reason, Block: n})
		}
	}
	for _, grade := range []collector.Grade{collector.QPS, collector.Concurrency} {
		if n, ok := x.Limit(grade); ok {
			d.Limits = append(d.Limits, subtotal{Name: grade.String(), Pass: n})
		}
	}
	for code, n := range x.View().Codes() {
		if n > 0 {
			d.Codes = append(d.Codes, subtotal{Name: code.String(), Complete: n})
		}
	}
	// The tree is searched every second while a viewer has the resource open, so the search is limited.
	left := maxNodes
	appendCallers(&d.Callers, x.Name(), f.stats.Tree(), nil, &left)
	for _, list := range []*[]subtotal{&d.Origins, &d.Callers, &d.Blocks, &d.Codes} {
		slices.SortStableFunc(*list, func(a, b subtotal) int {
			return cmp.Compare(b.Pass+b.Block+b.Complete, a.Pass+a.Block+a.Complete)
		})
		*list = (*list)[:min(len(*list), maxSubtotals)]
	}
	text, _ = json.Marshal(d) // cannot fail: d contains only strings and numbers
	age = noDuration
	if now := x.View().Snapshot(nil); now.InFlight > 0 {
		age = time.Duration(now.InFlightElapsed / float64(now.InFlight) * 1e9)
	}
	return text, age
}

// subtotalOf returns the counts of a view. Some nodes of the call tree count nothing, see [collector.TreeNode]; their
// counts are 0.
func subtotalOf(name string, v collector.View) subtotal {
	s := v.Snapshot(nil)
	return subtotal{Name: name, Pass: s.Total.Pass, Block: s.Total.Block}
}

// Limits of the details, and of the search in the call tree, where resources may call each other recursively.
const (
	maxSubtotals = 50
	maxDepth     = 16
	maxNodes     = 10_000
)

// appendCallers appends the nodes of a resource in the call tree below node. It names each node by the path of its
// callers, because a resource may be called below several entrances, and each path has its own counts. It skips a node
// whose name is already in the path; the path of a recursive call would otherwise be endless. left limits the number
// of nodes that the rest of the search visits, in all branches together.
func appendCallers(list *[]subtotal, name string, node *collector.TreeNode, path []string, left *int) {
	for _, child := range node.Children() {
		*left--
		if *left < 0 || len(*list) >= maxSubtotals || len(path) >= maxDepth || slices.Contains(path, child.Name()) {
			continue
		}
		if child.Name() == name && len(path) > 0 {
			// A node without counts only represents calls that the tree does not show.
			if s := subtotalOf(strings.Join(path, " › "), child.View()); s.Pass+s.Block > 0 {
				*list = append(*list, s)
			}
		}
		appendCallers(list, name, child, append(slices.Clip(path), child.Name()), left)
	}
}

// runningCalls are calls in flight of one resource, origin and entrance that have been in flight for a long time.
type runningCalls struct {
	Resource string   `json:"resource"`
	Origin   string   `json:"origin"`
	Entrance string   `json:"entrance"`
	Count    int      `json:"count"`
	Traces   []string `json:"traces,omitempty"` // trace IDs, those of the oldest calls
	Since    int64    `json:"since"`            // start of the oldest call, in milliseconds of Unix time
}

const (
	maxRunning    = 200         // calls that are read; counts above it are lower bounds
	maxGroups     = 10          // groups of calls in a message
	maxTraces     = 3           // trace IDs of a group
	minRunningAge = time.Second // younger calls are normal, and change every second
)

// groupRunning groups the oldest calls in flight, without those below the minimum age. The group with the oldest call
// comes first.
func (f *feed) groupRunning(oldest []collector.Running) []runningCalls {
	list, now := []runningCalls{}, f.wallMillis()
	for _, x := range oldest {
		if x.Age < minRunningAge {
			continue
		}
		i := slices.IndexFunc(list, func(g runningCalls) bool {
			return g.Resource == x.Resource && g.Origin == x.Origin && g.Entrance == x.Entrance
		})
		if i < 0 {
			if len(list) == maxGroups {
				continue
			}
			i = len(list)
			since := now - x.Age.Milliseconds()
			list = append(list, runningCalls{
				Resource: x.Resource, Origin: x.Origin, Entrance: x.Entrance, Since: since,
			})
		}
		g := &list[i]
		if g.Count++; x.TraceID != "" && len(g.Traces) < maxTraces {
			g.Traces = append(g.Traces, x.TraceID)
		}
	}
	return list
}
