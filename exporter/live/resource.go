package live

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// details describes one resource.
type details struct {
	Name    string  `json:"name"`
	Origins []share `json:"origins"`
	Callers []share `json:"callers"`
	Limits  []share `json:"limits"` // the numbers are what it allows
	Blocks  []share `json:"blocks"`
	Codes   []share `json:"codes"`
}

// share is the part of a resource's calls with one origin, caller, reason or code.
type share struct {
	Name     string `json:"name"`
	Pass     int64  `json:"pass"`
	Block    int64  `json:"block"`
	Complete int64  `json:"complete,omitempty"`
}

// resource serves the details of a resource.
func (p *Page) resource(w http.ResponseWriter, r *http.Request) {
	end, err := p.turn(r)
	if err != nil {
		full(w)
		return
	}
	var body []byte
	d := p.details(r.URL.Query().Get("name"))
	if d != nil {
		body, err = json.Marshal(d)
	}
	end(len(body))
	switch {
	case d == nil:
		http.Error(w, "no such resource", http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		p.respond(w, r, body)
	}
}

// details reads the details of a resource, nil if there is none of this name.
func (p *Page) details(name string) *details {
	m := p.stats.Seal()
	i := slices.IndexFunc(m.Resources, func(x *collector.Resource) bool { return x.Name() == name })
	if i < 0 {
		return nil
	}
	d := &details{Name: name, Origins: []share{}, Callers: []share{}, Limits: []share{}, Blocks: []share{}, Codes: []share{}}
	x := m.Resources[i]
	for name, v := range x.Origins() {
		d.Origins = append(d.Origins, shareOf(name, v))
	}
	for reason, n := range x.Blocks() {
		d.Blocks = append(d.Blocks, share{Name: reason, Block: n})
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
	p.callers(d, p.stats.Tree(), nil, &left)
	return d
}

// shareOf reads what a view has counted. Not every node of the call tree has counted anything: see [collector.TreeNode].
func shareOf(name string, v collector.View) share {
	s := v.Snapshot(nil)
	return share{Name: name, Pass: s.Total.Pass, Block: s.Total.Block}
}

// Limits of the search in the call tree, in which resources may call each other recursively.
const (
	maxCallers = 50
	maxDepth   = 16
	maxNodes   = 10_000
)

// callers finds the nodes of the resource in the call tree, by the path to them.
func (p *Page) callers(d *details, at *collector.TreeNode, above []string, left *int) {
	for _, child := range at.Children() {
		if *left--; *left < 0 || len(d.Callers) >= maxCallers || len(above) >= maxDepth || slices.Contains(above, child.Name()) {
			continue
		}
		if child.Name() == d.Name && len(above) > 0 {
			if s := shareOf(strings.Join(above, " › "), child.View()); s.Pass+s.Block > 0 { // or it stands for what is not shown
				d.Callers = append(d.Callers, s)
			}
		}
		p.callers(d, child, append(slices.Clip(above), child.Name()), left)
	}
}
