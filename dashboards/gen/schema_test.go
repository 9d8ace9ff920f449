package main

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"

	"github.com/windowstat/windowstat/dashboards"
)

// TestFilesHaveGrafanasSchema decodes what Grafana reads, panels and queries of all kinds included, and takes no field that its
// newest schema of dashboards for files does not have. Grafana 12 and 13 convert that to their own when they load it.
func TestFilesHaveGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for name := range boards {
		text, err := fs.ReadFile(dashboards.FS(), name+".json")
		if err != nil {
			t.Fatal(err)
		}
		if wrong := strictly(text); len(wrong) > 0 {
			t.Errorf("%s: %v", name, wrong)
		}
		for _, bad := range [][2]string{{`"refresh": "15s"`, `"refresh": 5`}, {`"tags": [`, `"tag": [`}, {`"legendFormat"`, `"legend"`}, {`"maxDataPoints"`, `"points"`}, {`"reduceOptions"`, `"reduce"`}} {
			if changed := strings.Replace(string(text), bad[0], bad[1], 1); changed != string(text) && len(strictly([]byte(changed))) == 0 {
				t.Errorf("%s: %s is not found", name, bad[1])
			}
		}
		// Behind a button nobody finds them.
		if strings.Contains(string(text), "inControlsMenu") {
			t.Errorf("%s hides links or switches", name)
		}
		if !strings.Contains(string(text), `"value": "default"`) {
			t.Errorf("%s does not begin with the default data source", name)
		}
	}
}

// strictly is what is wrong with a dashboard.
func strictly(text []byte) cog.BuildErrors {
	var d file
	err := d.UnmarshalJSONStrict(text)
	var wrong cog.BuildErrors
	if errors.As(err, &wrong) { // also without any
		return wrong
	}
	if err != nil {
		return cog.BuildErrors{{Message: err.Error()}}
	}
	return nil
}
