package live

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// opened is a resource that somebody has open: its last seconds, and what else is known of it, read once a second.
type opened struct {
	*series
	resource *collector.Resource
	used     int64 // the feed's: index of the second in which somebody asked for it

	mu      sync.Mutex // guards what follows
	at      int64      // index of the second in which the details were read
	details json.RawMessage
	age     time.Duration // of the calls in flight, on average; none if there are none
}

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

// opened returns the resource that a viewer has open, nil if there is none of this name.
func (f *feed) opened(s *snapshot, name string) *opened {
	f.mu.Lock()
	o := f.resources[name]
	f.mu.Unlock()
	if o == nil {
		all := f.stats.Seal().Resources
		i := slices.IndexFunc(all, func(r *collector.Resource) bool { return r.Name() == name })
		if i < 0 {
			return nil
		}
		r := all[i]
		o = &opened{resource: r, series: f.series(r.View())}
	}
	f.mu.Lock()
	if other := f.resources[name]; other != nil {
		o = other
	} else if len(f.resources) < mostOpened {
		f.resources[name] = o
	}
	o.used = s.to
	f.mu.Unlock()
	o.until(s.to)
	o.older(keptSeconds)
	o.describe(f, s.to)
	return o
}

// describe reads the details, unless that is done in this second.
func (o *opened) describe(f *feed, at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at >= at {
		return
	}
	o.at = at
	x, d := o.resource, details{Origins: []share{}, Callers: []share{}, Limits: []share{}, Blocks: []share{}, Codes: []share{}, Running: f.runningOf(o.resource.Oldest(mostRunning))}
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
	left := maxNodes
	callers(&d.Callers, x.Name(), f.stats.Tree(), nil, &left)
	for _, list := range []*[]share{&d.Origins, &d.Callers, &d.Blocks, &d.Codes} {
		slices.SortStableFunc(*list, func(a, b share) int {
			return cmp.Compare(b.Pass+b.Block+b.Complete, a.Pass+a.Block+a.Complete)
		})
		*list = (*list)[:min(len(*list), maxShares)]
	}
	o.details, _ = json.Marshal(d) // strings and numbers cannot fail
	o.age = none
	if now := x.View().Snapshot(nil); now.InFlight > 0 {
		o.age = time.Duration(now.InFlightElapsed / float64(now.InFlight) * 1e9)
	}
}

// news returns the details, nil if a viewer has them, and the average age of the calls in flight.
func (o *opened) news(had json.RawMessage) (details json.RawMessage, age time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Equal(o.details, had) {
		return nil, o.age
	}
	return o.details, o.age
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

// callers finds the nodes of a resource in the call tree, by the path to them.
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
