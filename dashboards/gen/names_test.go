package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// hostile lists names of resources with a special meaning in Grafana or PromQL.
var hostile = []string{
	`SELECT * FROM "users"`, `load user's cart`, `C:\dir\new`, `ends with \`, `\"`, "two\nlines",
	`a|b`, `a`, `b`, `a,b`, `{}`, `GET /{$}`, `.*`,
	`.+?()[]^$`, `größe 数 😀`, `All`, `None`, `[[job]]`, `{{instance}}`, `${__x}`, `50% & more=1#a`,
	`//`, `$1`, ` `, `-`,
}

// unreachable lists the names that the dashboards cannot select, as README.md documents.
var unreachable = []string{"back`tick", "$__interval x", "every ${__rate_interval}", "$__range"}

var variable = regexp.MustCompile(`\$\{(\w+):(\w+)\}`)

// inGrafana returns an expression as Grafana sends it: the browser inserts the selected values, and the server its
// variables.
func inGrafana(t *testing.T, expr string, chosen map[string][]string) string {
	t.Helper()
	expr = variable.ReplaceAllStringFunc(expr, func(v string) string {
		m := variable.FindStringSubmatch(v)
		values, ok := chosen[m[1]]
		switch {
		case !ok: // Grafana does not escape the value of All
			return map[string]string{
				"job": ".+", "instance": ".+", "cluster": ".*", "namespace": ".*", "resources": ".*",
			}[m[1]]
		case m[2] == "regex":
			var escaped []string
			for _, v := range values {
				escaped = append(escaped, regexp.MustCompile(`[\\^$*+?.()|[\]{}/]`).ReplaceAllString(v, `\$0`))
			}
			if len(escaped) == 1 {
				return escaped[0]
			}
			return "(" + strings.Join(escaped, "|") + ")"
		}
		t.Errorf("%s: a format that the test does not know, for %d values", v, len(values))
		return ""
	})
	return strings.NewReplacer(totalPrefix, "", coarse, "",
		"$__rate_interval", "1m0s", "${__rate_interval}", "1m0s",
		"$__interval_ms", "1000", "${__interval}", "1s", "$__interval", "1s",
		"$__range", "900s").Replace(expr)
}

// TestHostileNamesAreFound selects each name, alone and with another name, and matches every selector against all
// names.
func TestHostileNamesAreFound(t *testing.T) {
	dashboardsWithNames(t, func(where, expr, label string) {
		for i, name := range hostile {
			finds(t, where, inGrafana(t, expr, map[string][]string{label: {name}}), name)
			if label == "resources" {
				other := hostile[(i+1)%len(hostile)]
				finds(t, where, inGrafana(t, expr, map[string][]string{label: {name, other}}), name, other)
			}
		}
		for _, name := range unreachable {
			sent := inGrafana(t, expr, map[string][]string{label: {name}})
			e, err := parser.NewParser(parser.Options{}).ParseExpr(sent)
			if err == nil && strings.Contains(e.String(), name) {
				t.Errorf("%s: %q can be chosen now: README.md says otherwise", where, name)
			}
		}
	})
}

// dashboardsWithNames calls f for every expression that selects by the name of a resource, with the variable that has
// it.
func dashboardsWithNames(t *testing.T, f func(where, expr, variable string)) {
	t.Helper()
	n := 0
	for name, d := range read(t) {
		expressions(d, func(where, expr string) {
			for _, v := range []string{"resource", "resources"} {
				if strings.Contains(expr, "${"+v+":") {
					n++
					f(name+", "+where, expr, v)
				}
			}
		})
	}
	if n < 50 {
		t.Errorf("%d expressions select by name", n)
	}
}

// finds checks that the selectors of resources in an expression match the wanted names and no others.
func finds(t *testing.T, where, expr string, names ...string) {
	t.Helper()
	for _, s := range nodes[*parser.VectorSelector](t, where, expr) {
		for _, m := range s.LabelMatchers {
			if m.Name == "resource" {
				findsByName(t, where, m, names)
			}
		}
	}
}

func findsByName(t *testing.T, where string, m *labels.Matcher, names []string) {
	t.Helper()
	for _, name := range hostile {
		want := false
		for _, n := range names {
			want = want || n == name
		}
		if m.Matches(name) != want {
			t.Errorf("%s: %s selects %q: %v", where, m, name, !want)
		}
	}
}

// The list of resources has all names except those with a backtick, because a selector with a backtick is invalid and
// fails all queries of a dashboard.
func TestListOfResources(t *testing.T) {
	n := 0
	for name, d := range read(t) {
		for _, v := range d.Templating.List {
			if v.Name != "resource" && v.Name != "resources" {
				continue
			}
			n++
			listed := regexp.MustCompile(strings.Trim(v.Regex, "/"))
			for _, resource := range hostile {
				if m := listed.FindStringSubmatch(resource); len(m) != 2 || m[1] != resource {
					t.Errorf("%s does not list %q", name, resource)
				}
			}
			if listed.MatchString("back`tick") {
				t.Errorf("%s lists a name with a backtick", name)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d variables list resources, want 2", n)
	}
}
