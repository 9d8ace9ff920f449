package runs

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Processes run one after the other, and one of them is killed. Each second belongs to the run that counted it, with
// its labels.
func TestRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop-runs.json")
	open := func(id, first, oldest, last int64, instance string) *File {
		t.Helper()
		f, err := Open(path, Run{ID: id, First: first}, oldest, last, noRows)
		if err != nil {
			t.Fatal(err)
		}
		if instance != "" {
			if err := f.SetLabels("push", map[string]string{"instance": instance}); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	open(1, 100, 0, 0, "a")
	open(2, 200, 100, 150, "b") // the first process has logged up to 150
	open(3, 300, 100, 199, "")  // the second process has logged nothing: 199 is before its first second
	f := open(4, 300, 100, 290, "c")
	for unix, want := range map[int64]struct {
		id       int64
		instance string
		until    int64
	}{
		99:  {0, "", 100},
		100: {1, "a", 200},
		199: {1, "a", 200},
		200: {2, "b", 300},
		299: {2, "b", 300},
		300: {4, "c", 1 << 60},
		400: {4, "c", 1 << 60},
	} {
		r, until := f.At(unix)
		labels := r.Labels["push"]
		if r.ID != want.id || until != want.until || labels["instance"] != want.instance {
			t.Errorf("second %d: run %d, labels %v, until %d; want %+v", unix, r.ID, labels, until, want)
		}
	}
	if r, _ := f.At(100); r.Labels["another push"] != nil {
		t.Errorf("labels of an unknown push: %v", r.Labels)
	}
	list, err := Read(path)
	if err != nil || len(list) != 3 || list[0].Last != 150 || list[1].Last != 200 || list[2].Last != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	// Runs that have left the log are removed.
	if _, first := open(5, 500, 250, 450, "").At(0); first != 300 {
		t.Errorf("the oldest run begins at %d, want 300", first)
	}
}

// Open renames an invalid file and returns an error. The process has its run anyway.
func TestInvalidFile(t *testing.T) {
	good, _ := json.Marshal([]Run{{ID: 1, First: 10, Last: 20}, {ID: 2, First: 30}})
	for name, content := range map[string]string{
		"torn":      string(good[:len(good)/2]),
		"empty":     "",
		"zeros":     strings.Repeat("\x00", 100),
		"no list":   `{"ID":1}`,
		"no order":  `[{"ID":1,"First":30},{"ID":2,"First":10}]`,
		"no ID":     `[{"First":30}]`,
		"no first":  `[{"ID":3}]`,
		"backwards": `[{"ID":3,"First":30,"Last":20}]`,
		"huge":      strings.Repeat(" ", 16<<20+1),
	} {
		path := filepath.Join(t.TempDir(), "shop-runs.json")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, Run{ID: 7, First: 100}, 0, 90, noRows)
		if err == nil || !strings.Contains(err.Error(), "renamed the file") {
			t.Errorf("%s: %v", name, err)
		}
		if r, _ := f.At(100); r.ID != 7 {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := os.Stat(path + ".unreadable"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := Read(path); err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere", "x"), Run{ID: 1, First: 1}, 0, 0, noRows); err == nil {
		t.Error("Open wrote a file without a directory")
	}
}

// If a process crashes again and again, the newest runs are kept.
func TestRunsAreBounded(t *testing.T) {
	list := make([]Run, maxRuns+5)
	for i := range list {
		list[i] = Run{ID: int64(i + 1), First: int64(i + 1), Last: int64(i + 1)}
	}
	path := filepath.Join(t.TempDir(), "shop-runs.json")
	b, _ := json.Marshal(list)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Run{ID: 1 << 40, First: 1 << 40}, 0, 1<<39, noRows)
	if err != nil {
		t.Fatal(err)
	}
	if _, first := f.At(0); len(f.list) != maxRuns || first != 7 {
		t.Errorf("%d runs, the first at %d", len(f.list), first)
	}
}

// SetLabels copies the labels, so the caller may change its map.
func TestLabelsAreCopied(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "x"), Run{ID: 1, First: 1}, 0, 0, noRows)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"job": "a"}
	if err := f.SetLabels("push", labels); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(labels)
	labels["job"] = "b"
	r, _ := f.At(1)
	if !maps.Equal(r.Labels["push"], want) {
		t.Errorf("%v", r.Labels)
	}
	if err := f.SetLabels("another push", labels); err != nil || len(r.Labels) != 1 {
		t.Errorf("a returned Run has changed: %v, %v", r.Labels, err)
	}
}

// noRows is a log whose rows have no runs.
func noRows(int64) []Run { return nil }

// The rows decide the run of a second. The file adds the data that rows do not have.
func TestMerge(t *testing.T) {
	a := Run{ID: 1, First: 100, Last: 199, History: 60}
	b := Run{ID: 2, First: 200, Last: 299, History: 30}
	c := Run{ID: 3, First: 300, History: 10}
	row := func(id, first, last int64) Run { return Run{ID: id, First: first, Last: last} }
	for name, tc := range map[string]struct{ list, rows, want []Run }{
		"no rows with a run": {[]Run{a, b}, nil, []Run{a, b}},
		"no file":            {nil, []Run{row(1, 5, 9)}, []Run{row(1, 5, 9)}},
		"a complete file": {[]Run{a, b}, []Run{row(1, 105, 180), row(2, 210, 290)}, []Run{
			{ID: 1, First: 100, Last: 180, History: 60}, {ID: 2, First: 200, Last: 290, History: 30},
		}},
		"a run that is missing in the file": {
			[]Run{{ID: 1, First: 100}, c},
			[]Run{row(1, 100, 150), row(7, 160, 250)},
			[]Run{{ID: 1, First: 100, Last: 150}, {ID: 7, First: 160, Last: 250}, c},
		},
		"a run without an end, before rows of another": {[]Run{{ID: 1, First: 100}}, []Run{row(7, 160, 250)}, []Run{
			{ID: 1, First: 100}, row(7, 160, 250),
		}},
		"a run that claims rows of another": {
			[]Run{{ID: 1, First: 100, Last: 260, History: 60}},
			[]Run{row(7, 160, 250)},
			[]Run{{ID: 1, First: 100, Last: 159, History: 60}, row(7, 160, 250)},
		},
		"a run within the rows of another": {
			[]Run{{ID: 1, First: 170, Last: 200}},
			[]Run{row(7, 160, 250)},
			[]Run{row(7, 160, 250)},
		},
		"a first second among the rows of another": {
			[]Run{{ID: 2, First: 150}},
			[]Run{row(1, 100, 160), row(2, 170, 180)},
			[]Run{row(1, 100, 160), {ID: 2, First: 161, Last: 180}},
		},
	} {
		if got := Merge(tc.list, tc.rows); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A run in the file of another process has no seconds after its recorded last second, and no seconds without a recorded
// last second.
func TestIDWithUnknownEnd(t *testing.T) {
	f := New([]Run{{ID: 1, First: 100, Last: 150}, {ID: 2, First: 200}})
	for unix, want := range map[int64]int64{99: 0, 100: 1, 150: 1, 151: 0, 200: 0, 300: 0} {
		if id := f.ID(unix); id != want {
			t.Errorf("second %d: run %d, want %d", unix, id, want)
		}
	}
}
