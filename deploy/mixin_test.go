package deploy

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"testing"

	"github.com/google/go-jsonnet"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/windowstat/windowstat/dashboards"
)

// rules is the content of a rules file of Prometheus.
type rules struct{ Groups []monitoringv1.RuleGroup }

// mixin evaluates the mixin with a configuration.
func mixin(t *testing.T, config string) (m struct {
	Dashboards    map[string]any
	Rules, Alerts rules
},
) {
	t.Helper()
	text, err := jsonnet.MakeVM().EvaluateAnonymousSnippet("test.jsonnet", `
		local m = (import '../dashboards/mixin.libsonnet') + { _config+:: `+config+` };
		{ dashboards: m.grafanaDashboards, rules: m.prometheusRules, alerts: m.prometheusAlerts }`)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// The mixin has the dashboards, recording rules and alerts of the tree.
func TestMixin(t *testing.T) {
	m := mixin(t, "{}")
	for name, got := range map[string]rules{"recording.yaml": m.Rules, "alerts.yaml": m.Alerts} {
		text, err := fs.ReadFile(dashboards.FS(), "rules/"+name)
		if err != nil {
			t.Fatal(err)
		}
		var want rules
		if err := yaml.UnmarshalStrict(text, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || len(want.Groups) < 2 {
			t.Errorf("the mixin's %s are\n%+v\nwant\n%+v", name, got, want)
		}
	}
	boards, err := fs.Glob(dashboards.FS(), "*.json")
	if err != nil || len(m.Dashboards) != len(boards) {
		t.Errorf("%d dashboards of %d: %v", len(m.Dashboards), len(boards), err)
	}
	for _, name := range boards {
		text, err := fs.ReadFile(dashboards.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m.Dashboards["windowstat-"+name], want) {
			t.Errorf("%s is not the dashboard", name)
		}
	}
}

// Objectives, limits of calls in one second and the runbook's address are set where a mixin is.
func TestMixinIsConfigured(t *testing.T) {
	m := mixin(t, `{
		runbookBase: 'https://wiki/', defaultObjective: { threshold: '5s', share: 0.95 },
		objectives: [{ resource: 'checkout', threshold: '250ms', share: 0.999 }], callsInOneSecond: { checkout: 400 },
	}`)
	want := map[string]string{
		"windowstat_latency:default_objective map[threshold:5s]":                       "vector(0.95)",
		"resource:windowstat_latency:objective map[resource:checkout threshold:250ms]": "vector(0.999)",
		"resource:windowstat_calls_in_one_second:limit map[resource:checkout]":         "vector(400)",
	}
	alerts := 0
	for _, g := range m.Alerts.Groups {
		for _, r := range g.Rules {
			key := r.Record + " " + fmt.Sprint(r.Labels)
			if r.Expr.StrVal == want[key] {
				delete(want, key)
			}
			if r.Alert != "" {
				alerts++
				if r.Annotations["runbook_url"] != "https://wiki/"+r.Alert {
					t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
				}
			}
		}
	}
	if len(want) > 0 || alerts < 10 {
		t.Errorf("%d alerts, and no %v", alerts, want)
	}
}

// Every alert has a summary, a description, and a link to the runbook, as in kube-prometheus.
func TestAnnotations(t *testing.T) {
	for _, g := range mixin(t, "{}").Alerts.Groups {
		for _, r := range g.Rules {
			for _, name := range []string{"summary", "description", "runbook_url"} {
				if r.Alert != "" && (r.Annotations[name] == "" || len(r.Annotations) != 3) {
					t.Errorf("%s has the annotations %v", r.Alert, r.Annotations)
				}
			}
			if r.Alert != "" && r.Labels["severity"] == "" {
				t.Errorf("%s has no severity", r.Alert)
			}
		}
	}
}
