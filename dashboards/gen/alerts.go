package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// runbookBase is the URL before the name of an alert in its runbook_url. The links of the table repeat it, because the
// annotations of a rule are not labels of its series.
const runbookBase = "https://github.com/windowstat/windowstat/blob/main/dashboards/runbook.md#"

// withRunbook adds the variable for the first part of the runbook links.
func (b *board) withRunbook() {
	base := dashboard.StringOrMap{String: cog.ToPtr(runbookBase)}
	b.WithVariable(dashboard.NewConstantVariableBuilder("runbook_base").Value(base))
}

// severities lists the severities of the rules in ascending order. The highest one marks the row noRules.
var severities = []struct {
	label, color string
}{{"info", "blue"}, {"warning", "orange"}, {"critical", "red"}, {"unknown", "purple"}}

const (
	evaluated = "windowstat_rules:evaluated" // recorded by every evaluation of the rules
	noRules   = "No rules are evaluated"
)

// firing selects the firing alerts of the selected targets and resources. Alerts of a resource have no label instance.
const firing = `ALERTS{alertstate="firing",alertname=~"Windowstat.+",` + place + "," + jobs +
	",instance=~`(${instance:regex})?`" + many

// alerts returns the table of firing alerts by severity and name. If the server evaluates no rules, the table has the
// row noRules.
func alerts(id uint32) cog.Builder[dashboard.Panel] {
	none := `label_replace(label_replace(absent(` + evaluated + `), "alertname", "` + noRules + `", "", ""), ` +
		`"severity", "unknown", "", "")`
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
	return list(id, "Alerts", "Severity",
		"Firing alerts of rules/alerts.yaml and their number, the most severe first. "+
			"A click leads to the runbook. The table reads the data source. "+
			"If "+evaluated+" is absent there, the server evaluates no rules or writes their results elsewhere.").
		Unit(number).
		NoValue("none").
		WithTarget(instant(0, rank)).
		WithTarget(instant(1, "count by (severity, alertname) ("+firing+"}) or "+none)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "severity": true},
			"indexByName":   map[string]int{"Value #A": 0, "alertname": 1, "Value #B": 2},
			"renameByName":  map[string]string{"alertname": "Alert", "Value #A": "Severity", "Value #B": "Firing"},
		}}).
		OverrideByName("Severity", []dashboard.DynamicConfigValue{
			{Id: "mappings", Value: []dashboard.ValueMap{mappings}},
			{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
			{Id: "custom.width", Value: 84}, // fits the widest severity
		}).
		OverrideByName("Firing", []dashboard.DynamicConfigValue{{Id: "custom.width", Value: 58}}).
		OverrideByName("Alert", append(links("Runbook", "${runbook_base:raw}${__data.fields.Alert}", true),
			// The longest name fits, also on a phone.
			dashboard.DynamicConfigValue{Id: "custom.minWidth", Value: 250}))
}
