package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/internal/trouble"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := Write(dir, false); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := each(func(name string, text []byte) error {
		names = append(names, filepath.ToSlash(name))
		got, err := os.ReadFile(filepath.Join(dir, name))
		if string(got) != string(text) {
			t.Errorf("%s is not what was embedded", name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	names = append(names, "overview.json", "resource.json", "self.json", "rules/alerts.yaml", "compose/compose.yaml")
	if err := fstest.TestFS(FS(), names...); err != nil {
		t.Error(err)
	}
	if err := Write(dir, false); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

// home is the base of links to files outside the package, because Write may write the pages to any directory.
const home = "https://github.com/windowstat/windowstat/blob/main/"

var link = regexp.MustCompile(`\]\([^)\s]+\)`)

// Every link of the written pages leads to a written file, or to a file of the repository.
func TestWrittenLinks(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, false); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range []string{"README.md", "runbook.md"} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllString(string(page), -1) {
			to, _, _ := strings.Cut(m[2:len(m)-1], "#")
			path := filepath.Join(dir, to)
			if away, ok := strings.CutPrefix(to, home); ok {
				path, n = filepath.Join("..", strings.TrimSuffix(away, "?raw=true")), n+1
			} else if strings.Contains(to, "://") || to == "" {
				continue
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m)
			}
		}
	}
	if n < 9 {
		t.Errorf("%d links lead to the repository", n)
	}
}

func TestWriteKeepsWhatOthersChanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "overview.json")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, false); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Write: %v", err)
	}
	nowhere := filepath.Join(dir, "self.json")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), nowhere); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, false); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("Write through a link: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("something was written: %v, %v", left, err)
	}
	if err := Write(dir, true); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); !json.Valid(got) {
		t.Error("it was not overwritten")
	}
}

// TestFilesCanBeRead reads every file in its format.
func TestFilesCanBeRead(t *testing.T) {
	if err := each(func(name string, text []byte) error {
		var into any
		var err error
		switch filepath.Ext(name) {
		case ".json":
			err = json.Unmarshal(text, &into)
		case ".yaml":
			err = yaml.Unmarshal(text, &into)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAlertsAreExplainedAndTested checks that every alert has a heading in the runbook, the target of the links in the
// rule and in Overview, a test that fires it, and a test that does not.
func TestAlertsAreExplainedAndTested(t *testing.T) {
	text := func(name string) string {
		b, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text("rules/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	runbook, tests := text("runbook.md"), text("rules/test.yaml")+text("rules/hours.yaml")
	base := runbookBase(t, text("overview.json"))
	alerts := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if got := r.Annotations["runbook_url"]; got != base+r.Alert {
				t.Errorf("%s: the rule's runbook_url is %q, and Overview leads to %q", r.Alert, got, base+r.Alert)
			}
			if !strings.HasSuffix(base, "/dashboards/runbook.md#") || !strings.Contains(runbook, "\n## "+r.Alert+"\n") {
				t.Errorf("%s: the runbook has no such heading", r.Alert)
			}
			if !strings.Contains(tests, "alertname: "+r.Alert+"\n") {
				t.Errorf("%s: no test that it fires", r.Alert)
			}
			if !strings.Contains(tests, "{alertname: "+r.Alert+",") {
				t.Errorf("%s: no test that it does not fire", r.Alert)
			}
		}
	}
	if alerts < 10 {
		t.Errorf("%d alerts", alerts)
	}
}

// The runbook and the README name existing panels and dashboards, in italics.
func TestNamedPanelsAreThere(t *testing.T) {
	titles := map[string]bool{}
	boards, err := fs.Glob(FS(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range boards {
		text, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"(?:title|label)": "([^"]*)"`).FindAllSubmatch(text, -1) {
			titles[string(m[1])] = true
		}
	}
	// Terms of Grafana, words with emphasis, and "windowstat / Overview" for short.
	other := map[string]bool{
		"Dashboards, New, Import": true, "All": true, "Overview": true, "Scrape interval": true,
		"at least": true, "at most": true,
	}
	n := 0
	for _, name := range []string{"runbook.md", "README.md"} {
		text, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		prose := strings.ReplaceAll(regexp.MustCompile("(?s)`[^`]*`").ReplaceAllString(string(text), ""), "**", "")
		for _, m := range regexp.MustCompile(`\*([^*]+)\*`).FindAllStringSubmatch(prose, -1) {
			title := strings.Join(strings.Fields(m[1]), " ")
			if n++; !titles[title] && !other[title] {
				t.Errorf("%s: no panel is called %q", name, title)
			}
		}
	}
	if n < 25 {
		t.Errorf("there are only %d names", n)
	}
}

// Rules on single seconds have an offset of half a minute, as the runbook documents, except the rule about seconds that
// do not arrive.
func TestRulesLookBack(t *testing.T) {
	raw := regexp.MustCompile(`(^|[^:\w])windowstat_persecond_`)
	n := 0
	for _, name := range []string{"rules/recording.yaml", "rules/alerts.yaml"} {
		text, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Record, Expr string }
			}
		}
		if err := yaml.Unmarshal(text, &rules); err != nil {
			t.Fatal(err)
		}
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if !raw.MatchString(r.Expr) {
					continue
				}
				n++
				if back := strings.Contains(r.Expr, "offset 30s"); back == (r.Alert == "WindowstatSecondsStopped") {
					t.Errorf("%s%s: offset 30s is there: %t", r.Record, r.Alert, back)
				}
			}
		}
	}
	text, err := fs.ReadFile(FS(), "runbook.md")
	if err != nil || n < 8 || !strings.Contains(string(text), "Rules on single seconds have `offset 30s`") {
		t.Errorf("%d rules: %v", n, err)
	}
}

// runbookBase is the first part of the alert links of Overview, before the name of the alert.
func runbookBase(t *testing.T, overview string) string {
	t.Helper()
	if !strings.Contains(overview, `"url": "${runbook_base:raw}${__data.fields.Alert}"`) {
		t.Error("the alerts of Overview have other links")
	}
	var board struct {
		Templating struct{ List []struct{ Name, Query any } }
	}
	if err := json.Unmarshal([]byte(overview), &board); err != nil {
		t.Fatal(err)
	}
	for _, v := range board.Templating.List {
		if v.Name == "runbook_base" {
			return v.Query.(string)
		}
	}
	t.Fatal("Overview has no variable runbook_base")
	return ""
}

// The alerts use the same thresholds as the live page.
func TestThresholdsOfTrouble(t *testing.T) {
	b, err := fs.ReadFile(FS(), "rules/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, group, _ := strings.Cut(string(b), "- name: windowstat-trouble\n")
	group, _, _ = strings.Cut(group, "  - name: ")
	for what, text := range map[string]string{
		"age of a call": fmt.Sprintf("(windowstat_in_flight_oldest_seconds) >= %v\n", trouble.OldAge.Seconds()),
		"multiple of the usual age": fmt.Sprintf(
			">= %d * max by (instance, resource) (max_over_time(windowstat_persecond_rt_max", trouble.AgeFactor),
		"failed calls": fmt.Sprintf(">= %d + sum", trouble.MinCalls),
		"shares":       fmt.Sprintf("* (%v + %d *", trouble.MinShare, trouble.Factor),
		"window":       fmt.Sprintf("(windowstat_persecond_exception[%ds999ms]", trouble.Window-1),
	} {
		if !strings.Contains(group, text) {
			t.Errorf("%s: the alerts lack %q", what, text)
		}
	}
}
