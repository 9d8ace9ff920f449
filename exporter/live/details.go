package live

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// details describe one resource, since the start.
type details struct {
	Origins []share   `json:"origins"`
	Callers []share   `json:"callers"`
	Limits  []share   `json:"limits"` // the numbers are what it allows
	Blocks  []share   `json:"blocks"`
	Codes   []share   `json:"codes"`
	Running []running `json:"running"`
}

// share is the part of a resource's calls with one origin, caller, reason or code.
type share struct {
	Name     string `json:"name"`
	Pass     int64  `json:"pass,omitempty"`
	Block    int64  `json:"block,omitempty"`
	Complete int64  `json:"complete,omitempty"`
}

// describe reads the details of a resource, and the average age of its calls in flight, none if there are none.
func (f *feed) describe(x *collector.Resource) (text json.RawMessage, age time.Duration) {
	d := details{Origins: []share{}, Callers: []share{}, Limits: []share{}, Blocks: []share{}, Codes: []share{}, Running: f.runningOf(x.Oldest(mostRunning))}
	for name, v := range x.Origins() {
		d.Origins = append(d.Origins, shareOf(name, v))
	}
	for reason, n := range x.Blocks() {
		if n > 0 {
			d.Blocks = append(d.Blocks, share{Name: reason, Block: n})
		}
	}
	for _, grade := range []collector.Grade{collector.QPS, collector.Concurrency} {
		if n, ok := x.Limit(grade); ok {
			d.Limits = append(d.Limits, share{Name: grade.String(), Pass: n})
		}
	}
	for code, n := range x.View().Codes() {
		if n > 0 {
			d.Codes = append(d.Codes, share{Name: code.String(), Complete: n})
		}
	}
	// The tree is looked through for each second in which somebody has the resource open, so there is a bound to it.
	left := maxNodes
	callers(&d.Callers, x.Name(), f.stats.Tree(), nil, &left)
	for _, list := range []*[]share{&d.Origins, &d.Callers, &d.Blocks, &d.Codes} {
		slices.SortStableFunc(*list, func(a, b share) int {
			return cmp.Compare(b.Pass+b.Block+b.Complete, a.Pass+a.Block+a.Complete)
		})
		*list = (*list)[:min(len(*list), maxShares)]
	}
	text, _ = json.Marshal(d) // strings and numbers cannot fail
	age = none
	if now := x.View().Snapshot(nil); now.InFlight > 0 {
		age = time.Duration(now.InFlightElapsed / float64(now.InFlight) * 1e9)
	}
	return text, age
}

// shareOf reads what a view has counted. Not every node of the call tree has counted anything: see [collector.TreeNode].
func shareOf(name string, v collector.View) share {
	s := v.Snapshot(nil)
	return share{Name: name, Pass: s.Total.Pass, Block: s.Total.Block}
}

// Limits of what is shown, and of the search in the call tree, in which resources may call each other recursively.
const (
	maxShares = 50
	maxDepth  = 16
	maxNodes  = 10_000
)

// callers finds the nodes of a resource in the call tree, by the path to them: a resource may be called below several entrances, and
// each path has counts of its own. A name that is above already is not entered again, or a recursion would be a path without an end.
// left is how many nodes may still be looked at, in all branches together.
func callers(list *[]share, name string, at *collector.TreeNode, above []string, left *int) {
	for _, child := range at.Children() {
		if *left--; *left < 0 || len(*list) >= maxShares || len(above) >= maxDepth || slices.Contains(above, child.Name()) {
			continue
		}
		if child.Name() == name && len(above) > 0 {
			if s := shareOf(strings.Join(above, " › "), child.View()); s.Pass+s.Block > 0 { // or it stands for what is not shown
				*list = append(*list, s)
			}
		}
		callers(list, name, child, append(slices.Clip(above), child.Name()), left)
	}
}

// running is a call that has been in flight for long.
type running struct {
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
	Entrance string `json:"entrance"`
	Trace    string `json:"trace,omitempty"`
	Since    int64  `json:"since"` // milliseconds of Unix time
}

const (
	mostRunning = 10
	longRunning = time.Second // younger calls are no trouble, and others in each second
)

// runningOf describes the oldest calls in flight.
func (f *feed) runningOf(oldest []collector.Running) []running {
	list, now := []running{}, f.wall()
	for _, x := range oldest {
		if x.Age >= longRunning {
			list = append(list, running{x.Resource, x.Origin, x.Entrance, x.TraceID, now - x.Age.Milliseconds()})
		}
	}
	return list
}
