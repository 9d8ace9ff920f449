package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// runbookBase is what stands before the name of an alert in its runbook_url, in the rules and in the links of the table: a rule's
// annotations are not in its series.
const runbookBase = "https://github.com/windowstat/windowstat/blob/main/dashboards/runbook.md#"

// withRunbook adds the variable that the links of the alerts begin with.
func (b *board) withRunbook() {
	b.WithVariable(dashboard.NewConstantVariableBuilder("runbook_base").Value(dashboard.StringOrMap{String: cog.ToPtr(runbookBase)}))
}

// severities are those of the rules, and what to sort them by. The highest is that of the line that says that no rule is evaluated.
var severities = []struct {
	label, color string
}{{"info", "blue"}, {"warning", "orange"}, {"critical", "red"}, {"unknown", "purple"}}

const (
	watchdog = "WindowstatWatchdog"
	noRules  = "No rules are evaluated"
)

// firing selects the alerts that fire, of what is chosen; those of a resource have no instance.
const firing = `ALERTS{alertstate="firing",alertname=~"Windowstat.+",alertname!="` + watchdog + `",` + place + "," + jobs + ",instance=~`(${instance:regex})?`" + many

// alerts are those that fire, by severity and name, and a line that says so where the server evaluates no rules.
func alerts(id uint32) cog.Builder[dashboard.Panel] {
	none := `label_replace(label_replace(absent(ALERTS{alertname="` + watchdog + `"}), "alertname", "` + noRules + `", "", ""), "severity", "unknown", "", "")`
	rank, mappings := "", dashboard.ValueMap{Type: "value", Options: map[string]dashboard.ValueMappingResult{}}
	for i, s := range severities {
		level := string(rune('1' + i))
		mappings.Options[level] = dashboard.ValueMappingResult{Text: cog.ToPtr(s.label), Color: cog.ToPtr(s.color)}
		if s.label != "unknown" {
			rank += level + ` * group by (severity, alertname) (` + firing + `,severity="` + s.label + `"}) or `
		} else {
			rank += level + ` * ` + none
		}
	}
	q := func(ref int, expr string) *prometheus.DataqueryBuilder {
		return query{expr: expr, instant: true}.target(ref).Format(prometheus.PromQueryFormatTable)
	}
	return table.NewPanelBuilder().
		Id(id).Title("Alerts").
		Description("Alerts of rules/alerts.yaml that fire, the most severe first, and how many of each. A click leads to the runbook. They are read from the data source: where it has none of "+watchdog+", which always fires, it evaluates no rules or writes their results elsewhere.").
		Datasource(source).
		Unit(number).
		Thresholds(plain()).
		NoValue("none").
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Severity").Desc(true)}).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
		WithTarget(q(0, rank)).
		WithTarget(q(1, "count by (severity, alertname) ("+firing+"}) or "+none)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "severity": true}, "indexByName": map[string]int{"Value #A": 0, "alertname": 1, "Value #B": 2},
			"renameByName": map[string]string{"alertname": "Alert", "Value #A": "Severity", "Value #B": "Firing"},
		}}).
		OverrideByName("Severity", []dashboard.DynamicConfigValue{
			{Id: "mappings", Value: []dashboard.ValueMap{mappings}},
			{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
			{Id: "custom.width", Value: 84}, // of its widest word
		}).
		OverrideByName("Firing", []dashboard.DynamicConfigValue{{Id: "custom.width", Value: 58}}).
		OverrideByName("Alert", append(links("Runbook", "${runbook_base:raw}${__data.fields.Alert}", true),
			dashboard.DynamicConfigValue{Id: "custom.minWidth", Value: 250})) // of the longest name, also on a telephone
}
