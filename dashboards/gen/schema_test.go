package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/windowstat/windowstat/dashboards"
)

// TestFilesHaveGrafanasSchema decodes the dashboards, including all panels and queries, and rejects fields outside
// Grafana's newest schema of dashboards for files. Grafana 12 and 13 convert this schema to their own when they load a
// file.
func TestFilesHaveGrafanasSchema(t *testing.T) {
	register()
	for name := range boards {
		text, err := fs.ReadFile(dashboards.FS(), name+".json")
		if err != nil {
			t.Fatal(err)
		}
		if wrong := strictly(text); len(wrong) > 0 {
			t.Errorf("%s: %v", name, wrong)
		}
		if kinds := unregistered(t, text); len(kinds) > 0 {
			t.Errorf("%s: nothing checks panels of %q; register them", name, kinds)
		}
		for _, bad := range [][2]string{
			{`"refresh": "15s"`, `"refresh": 5`},
			{`"tags": [`, `"tag": [`},
			{`"legendFormat"`, `"legend"`},
			{`"maxDataPoints"`, `"points"`},
			{`"reduceOptions"`, `"reduce"`},
		} {
			changed := strings.Replace(string(text), bad[0], bad[1], 1)
			if changed != string(text) && len(strictly([]byte(changed))) == 0 {
				t.Errorf("%s: %s is not found", name, bad[1])
			}
		}
		// Users do not find links and variables in a menu.
		if strings.Contains(string(text), "inControlsMenu") {
			t.Errorf("%s hides links or switches", name)
		}
		if !strings.Contains(string(text), `"value": "default"`) {
			t.Errorf("%s does not begin with the default data source", name)
		}
	}
}

// register makes the SDK decode the panels and queries of the dashboards with their own types. Registering all types of
// the SDK would take long to compile.
func register() {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
}

// unregistered returns the panel types without a registered schema. The SDK accepts any field in such panels.
func unregistered(t *testing.T, text []byte) (kinds []string) {
	t.Helper()
	var d file
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var all []dashboard.Panel
	for _, p := range d.Panels {
		if p.Panel != nil {
			all = append(all, *p.Panel)
		} else {
			all = append(all, p.RowPanel.Panels...)
		}
	}
	for _, p := range all {
		if _, ok := cog.ConfigForPanelcfgVariant(p.Type); !ok {
			kinds = append(kinds, p.Type)
		}
	}
	return kinds
}

// strictly returns the errors of a dashboard. The SDK does not know __requires.
func strictly(text []byte) cog.BuildErrors {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return cog.BuildErrors{{Message: err.Error()}}
	}
	delete(fields, "__requires")
	text, err := json.Marshal(fields)
	if err != nil {
		return cog.BuildErrors{{Message: err.Error()}}
	}
	var d file
	err = d.UnmarshalJSONStrict(text)
	var wrong cog.BuildErrors
	if errors.As(err, &wrong) { // also without any
		return wrong
	}
	if err != nil {
		return cog.BuildErrors{{Message: err.Error()}}
	}
	return nil
}
