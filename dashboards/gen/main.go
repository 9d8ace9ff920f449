// Command gen writes the dashboards as classic JSON, the format of Grafana's provisioning, to the parent directory:
//
//	go run . -out ..
//
// It writes a set of dashboards for each type of data source; see [sets].
//
// The command is a separate module, so windowstat does not depend on Grafana's SDK. The JSON is committed; a test
// checks that it is current.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// boards lists all dashboards. The uid of a dashboard is windowstat- and the name of its file.
var boards = map[string]func() (file, error){
	"overview": overview,
	"resource": resource,
	"self":     self,
}

// A set is the dashboards for a type of data source. Each set has uids, titles and links of its own, because Grafana
// loads no dashboards of a directory if two of them have the same uid.
type set struct {
	dir           string // below the output directory, and a part of uids and tags; empty for the first set
	source        string // type of the data source
	name, version string // of the data source, for __requires
	grafana       string // version of Grafana
}

// sets lists all sets. The plugin of VictoriaMetrics has this id since 0.12.0, and is signed since 0.13.0.
var sets = []set{
	{"", prometheusType, "Prometheus", "1.0.0", "10.0.0"},
	{"victoriametrics", "victoriametrics-metrics-datasource", "VictoriaMetrics", "0.13.0", "10.0.0"},
}

func main() {
	out := flag.String("out", "..", "`DIR` that the dashboards go to")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write writes all sets.
func write(out string) error {
	for _, s := range sets {
		if err := os.MkdirAll(filepath.Join(out, s.dir), 0o755); err != nil {
			return err
		}
		for name, build := range boards {
			text, err := s.render(build)
			if err == nil {
				err = os.WriteFile(filepath.Join(out, s.dir, name+".json"), text, 0o644)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// A required is an entry of __requires. Grafana's import page shows the entries.
type required struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// render returns the text of a dashboard's file. The panels have the version of Grafana, which contains them.
func (s set) render(build func() (file, error)) ([]byte, error) {
	d, err := build()
	if err != nil {
		return nil, err
	}
	requires := []required{
		{"grafana", "grafana", "Grafana", s.grafana},
		{"datasource", s.source, s.name, s.version},
	}
	for _, kind := range panelTypes(d) {
		requires = append(requires, required{"panel", kind, panelNames[kind], s.grafana})
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // expressions have < and > in them
	e.SetIndent("", "  ")
	err = e.Encode(struct {
		Requires []required `json:"__requires"`
		file
	}{requires, d})
	if s.dir == "" || err != nil {
		return text.Bytes(), err
	}
	return []byte(strings.NewReplacer(
		`"type": "`+prometheusType+`"`, `"type": "`+s.source+`"`,
		`"query": "`+prometheusType+`"`, `"query": "`+s.source+`"`,
		`"`+tag+`"`, `"`+tag+"-"+s.dir+`"`,
		`"uid": "`+tag+"-", `"uid": "`+tag+"-"+s.dir+"-",
		"/d/"+tag+"-", "/d/"+tag+"-"+s.dir+"-",
		`"title": "`+*d.Title+`"`, `"title": "`+*d.Title+" ("+s.name+`)"`,
	).Replace(text.String())), nil
}

var panelNames = map[string]string{"heatmap": "Heatmap", "stat": "Stat", "table": "Table", "timeseries": "Time series"}

// panelTypes returns the types of the panels of a dashboard, in order.
func panelTypes(d file) []string {
	kinds := map[string]bool{}
	for _, p := range d.Panels {
		if p.Panel != nil {
			kinds[p.Panel.Type] = true
			continue
		}
		for _, p := range p.RowPanel.Panels {
			kinds[p.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
