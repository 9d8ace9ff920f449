package live

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// details describes one resource, or the whole process.
type details struct {
	Name    string    `json:"name"`
	Seconds [][]int64 `json:"seconds"` // time, pass, block, exception, complete, average and p99 (µs, -1 for none), most in flight, peak
	Origins []share   `json:"origins"`
	Callers []share   `json:"callers"`
	Blocks  []share   `json:"blocks"`
}

// share is the part of a resource's calls with one origin, caller or reason.
type share struct {
	Name  string `json:"name"`
	Pass  int64  `json:"pass"`
	Block int64  `json:"block"`
}

// shownSeconds is how many seconds of a resource are shown.
const shownSeconds = 300

// resource serves the details of a resource; without a name, of the whole process.
func (p *Page) resource(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	m := p.stats.Seal()
	d := details{Name: q.Get("name"), Origins: []share{}, Callers: []share{}, Blocks: []share{}}
	view := p.stats.Tree().View().Node()
	if d.Name != "" {
		i := slices.IndexFunc(m.Resources, func(x *collector.Resource) bool { return x.Name() == d.Name })
		if i < 0 {
			http.Error(w, "no such resource", http.StatusNotFound)
			return
		}
		x := m.Resources[i]
		view = x.View().Node()
		for name, v := range x.Origins() {
			d.Origins = append(d.Origins, shareOf(name, v.Node(), m.Now))
		}
		for reason, n := range x.Blocks() {
			d.Blocks = append(d.Blocks, share{Name: reason, Block: n})
		}
		left := maxNodes
		p.callers(&d, p.stats.Tree(), nil, &left, m.Now)
	}
	d.Seconds = seconds(view, m.Open)
	if p.stats.DurationsUnknown() {
		for _, s := range d.Seconds {
			s[5], s[6] = -1, -1
		}
	}
	body, err := json.Marshal(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.respond(w, r, body)
}

func shareOf(name string, v *node.View, now leap.Reading) share {
	s := v.Snapshot(now, nil)
	return share{name, s.Total.Pass, s.Total.Block}
}

// seconds returns the last seconds of a view.
func seconds(v *node.View, open int64) [][]int64 {
	list := v.AppendSeconds(nil, open-shownSeconds, open)
	hs := make([]node.Histogram, min(60, len(list)))
	v.Histograms(open-int64(len(hs)), hs)
	rows := make([][]int64, len(list))
	for i := range list {
		m := &list[i]
		p99 := int64(-1)
		if k := i - (len(list) - len(hs)); k >= 0 && hs[k].Count() > 0 {
			p99 = hs[k].Quantile(0.99).Microseconds()
		}
		rows[i] = []int64{m.Start.Unix(), m.Pass, m.Block, m.Exception, m.Complete, m.AvgRT().Microseconds(), p99, m.InFlightMax, m.PassPeak}
	}
	return rows
}

// Limits of the search in the call tree, in which resources may call each other recursively.
const (
	maxCallers = 50
	maxDepth   = 16
	maxNodes   = 10_000
)

// callers finds the nodes of the resource in the call tree, by the path to them.
func (p *Page) callers(d *details, at *collector.TreeNode, above []string, left *int, now leap.Reading) {
	for _, child := range at.Children() {
		if *left--; *left < 0 || len(d.Callers) >= maxCallers || len(above) >= maxDepth || slices.Contains(above, child.Name()) {
			continue
		}
		if child.Name() == d.Name && len(above) > 0 {
			d.Callers = append(d.Callers, shareOf(strings.Join(above, " › "), child.View().Node(), now))
		}
		p.callers(d, child, append(slices.Clip(above), child.Name()), left, now)
	}
}
