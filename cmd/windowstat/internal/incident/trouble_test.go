package incident

import (
	"fmt"
	"testing"
)

// The recorded page shows the trouble of an incident from the log, with its seconds, and none in a calm hour.
func TestTroubleInARecording(t *testing.T) {
	s := shop()
	s.change = func(at int, name string, x *second) {
		switch {
		case at >= 100 && at < 130 && name == "db":
			x.inFlight = 1000
		case at >= 100 && at < 130 && name == "pay":
			x.exception = x.pass
		case at >= 100 && at < 130 && name == "home":
			x.pass = 0
		case at >= 100 && at < 130 && name == "search":
			x.rtMs = 100
		}
	}
	dir := t.TempDir()
	s.write(t, dir, 600, 1)
	first := epoch.Unix() - Before
	got := map[string]string{}
	for _, r := range read(t, 600, dir).resources() {
		for _, x := range r.troubles(first, Before+600) {
			got[r.name] += fmt.Sprintf("%d-%d %.20s; ", x.First-Before, x.End-Before, x.Text)
		}
	}
	want := map[string]string{
		"db":     "101-130 hangs: 1,0",
		"home":   "101-130 stopped: 0",
		"pay":    "102-1",
		"search": "10",
	}
	for name, text := range got {
		if want[name] == "" || len(text) < len(want[name]) || text[:len(want[name])] != want[name] {
			t.Errorf("%s: %s; want %s", name, text, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("trouble of %d resources: %v", len(got), got)
	}
	dir = t.TempDir()
	shop().write(t, dir, 3600, 1)
	for _, r := range read(t, 3600, dir).resources() {
		if list := r.troubles(first, Before+3600); len(list) > 0 {
			t.Errorf("a calm hour: %s: %+v", r.name, list)
		}
	}
}
