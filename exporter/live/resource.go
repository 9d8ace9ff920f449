package live

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// details describes one resource.
type details struct {
	Name    string          `json:"name"`
	Columns []string        `json:"columns"` // of a second, behind its time
	Seconds json.RawMessage `json:"seconds"`
	Origins []share         `json:"origins"`
	Callers []share         `json:"callers"`
	Blocks  []share         `json:"blocks"`
}

// share is the part of a resource's calls with one origin, caller or reason.
type share struct {
	Name  string `json:"name"`
	Pass  int64  `json:"pass"`
	Block int64  `json:"block"`
}

// shownSeconds is how many seconds of a resource are shown.
const shownSeconds = 300

// resource serves the details of a resource.
func (p *Page) resource(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	m := p.stats.Seal()
	d := details{Name: q.Get("name"), Origins: []share{}, Callers: []share{}, Blocks: []share{}}
	i := slices.IndexFunc(m.Resources, func(x *collector.Resource) bool { return x.Name() == d.Name })
	if i < 0 {
		http.Error(w, "no such resource", http.StatusNotFound)
		return
	}
	x := m.Resources[i]
	view := x.View().Node()
	for name, v := range x.Origins() {
		d.Origins = append(d.Origins, shareOf(name, v))
	}
	for reason, n := range x.Blocks() {
		d.Blocks = append(d.Blocks, share{Name: reason, Block: n})
	}
	left := maxNodes
	p.callers(&d, p.stats.Tree(), nil, &left)
	c := columnsOf(inDetails, p.stats.DurationsUnknown())
	d.Columns, d.Seconds = c.names, c.seconds(view, m.Open)
	body, err := json.Marshal(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.respond(w, r, body)
}

// shareOf reads what a view has counted. Not every node of the call tree has counted anything: see [collector.TreeNode].
func shareOf(name string, v collector.View) share {
	s := v.Snapshot(nil)
	return share{name, s.Total.Pass, s.Total.Block}
}

// seconds are the last seconds of a view as JSON: the time of each, then its columns.
func (c *columns) seconds(v *node.View, open int64) []byte {
	list := v.AppendSeconds(nil, open-shownSeconds, open)
	hs := make([]node.Histogram, min(60, len(list)))
	v.Histograms(open-int64(len(hs)), hs)
	b := []byte{'['}
	for i := range list {
		m, p99 := &list[i], none
		if k := i - (len(list) - len(hs)); k >= 0 && hs[k].Count() > 0 {
			p99 = hs[k].Quantile(0.99)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), m.Start.Unix(), 10)
		b = append(c.append(b, m, p99), ']')
	}
	return append(b, ']')
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
