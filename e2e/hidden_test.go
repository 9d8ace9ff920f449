package e2e

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// allSelected replaces Grafana's variables in a query by matchers of all targets and resources.
var allSelected = strings.NewReplacer(
	"${cluster:regex}",
	".*",
	"${namespace:regex}",
	".*",
	"${job:regex}",
	".+",
	"${instance:regex}",
	".+",
	"${resources:regex}",
	".*",
	"${resource:regex}",
	".*",
)

// withHidden replaces the hidden variables of Overview in an expression, as Grafana does: by the part of a name that
// the variable's regular expression captures, or by nothing.
func (s *server) withHidden(t *testing.T, expr string) string {
	t.Helper()
	text, err := os.ReadFile("../dashboards/overview.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct {
			List []struct{ Name, Definition, Regex string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, v := range board.Templating.List {
		name := "${" + v.Name + ":raw}"
		if !strings.Contains(expr, name) {
			continue
		}
		selector := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ", __name__)")
		body, err := s.get(
			s.queries+"/api/v1/label/__name__/values",
			url.Values{"match[]": {allSelected.Replace(selector)}},
		)
		if err != nil {
			t.Fatal(err)
		}
		var names struct{ Data []string }
		if err := json.Unmarshal(body, &names); err != nil {
			t.Fatal(err)
		}
		value := ""
		for _, n := range names.Data {
			if m := regexp.MustCompile(strings.Trim(v.Regex, "/")).FindStringSubmatch(n); m != nil {
				value = m[1]
			}
		}
		expr = strings.ReplaceAll(expr, name, value)
	}
	return expr
}
