package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/dashboards"
)

// forEachFile calls f for each file of each set.
func forEachFile(t *testing.T, f func(s set, name string, text []byte)) {
	t.Helper()
	for _, s := range sets {
		for name := range boards {
			text, err := fs.ReadFile(dashboards.FS(), path.Join(s.dir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			f(s, name, text)
		}
	}
}

// Every data source and panel type of a dashboard is in its __requires, with a version.
func TestRequires(t *testing.T) {
	forEachFile(t, func(s set, name string, text []byte) {
		var d struct {
			Requires []required `json:"__requires"`
			shown
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, r := range d.Requires {
			if r.Version == "" || r.Name == "" {
				t.Errorf("%s, %s: %+v has no name or version", s.dir, name, r)
			}
			listed[r.Type+" "+r.ID] = true
		}
		used := []string{"grafana grafana", "datasource " + s.source}
		for _, p := range panels(d.shown) {
			if p.Type != "row" {
				used = append(used, "panel "+p.Type)
			}
		}
		for _, u := range used {
			if !listed[u] {
				t.Errorf("%s, %s requires %s", s.dir, name, u)
			}
		}
	})
}

// All data sources of a set have its type, and no two dashboards share a uid or title.
func TestSets(t *testing.T) {
	uids, titles := map[string]bool{}, map[string]bool{}
	forEachFile(t, func(s set, name string, text []byte) {
		var d shown
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if uids[d.UID] || titles[d.Title] || len(d.UID) > 40 {
			t.Errorf("%s, %s: the uid %q or the title %q is not usable", s.dir, name, d.UID, d.Title)
		}
		uids[d.UID], titles[d.Title] = true, true
		var all any
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		n := 0
		walk(all, func(o map[string]any) {
			if ref, ok := o["datasource"].(map[string]any); ok {
				if n++; fmt.Sprint(ref["type"]) != s.source {
					t.Errorf("%s, %s: a data source of type %v", s.dir, name, ref["type"])
				}
			}
			if o["type"] == "datasource" && o["query"] != nil && o["query"] != s.source {
				t.Errorf("%s, %s: the variable lists data sources of type %v", s.dir, name, o["query"])
			}
		})
		if n < 50 {
			t.Errorf("%s, %s has %d data sources", s.dir, name, n)
		}
		for _, other := range sets {
			if link := "/d/windowstat-" + strings.TrimPrefix(other.dir+"-resource?", "-"); other != s &&
				strings.Contains(string(text), link) {
				t.Errorf("%s, %s leads to another set", s.dir, name)
			}
		}
	})
}

// walk calls f for each object in a JSON value.
func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, x := range v {
			walk(x, f)
		}
	case []any:
		for _, x := range v {
			walk(x, f)
		}
	}
}

// Grafana asks for exemplars only for queries of a range, and its heat maps of native histograms do not show them.
func TestExemplars(t *testing.T) {
	n := 0
	for name, d := range read(t) {
		for _, p := range panels(d) {
			for _, q := range p.Targets {
				if !q.Exemplar {
					continue
				}
				if n++; q.Instant || p.Type != "timeseries" && p.Type != "heatmap" ||
					!strings.Contains(p.Description, "trace ID") {
					t.Errorf(
						"%s, %q: exemplars in a %s, instant %t, described as %q",
						name,
						p.Title,
						p.Type,
						q.Instant,
						p.Description,
					)
				}
			}
		}
	}
	if n < 3 {
		t.Errorf("%d panels show exemplars", n)
	}
}
