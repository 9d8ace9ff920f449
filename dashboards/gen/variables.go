package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// prometheusType is the type of Grafana's data source for Prometheus. Other sets have another type, see [set].
const prometheusType = "prometheus"

// source is the data source of all panels: the value of the variable datasource. A fixed name would be valid in a
// single Grafana only.
var source = common.DataSourceRef{Type: cog.ToPtr(prometheusType), Uid: cog.ToPtr("${datasource}")}

// withVariables adds the variables for the data source and for the labels of targets. If targets have no labels cluster
// and namespace, the only choice there is All, which matches an empty label.
//
// The per-second endpoint usually has a separate job, for example shop-seconds next to shop. The regular expression
// removes the suffix, so both are one entry in the list; see [perSecond].
func (b *board) withVariables() {
	b.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").
		Type(prometheusType).Current(defaultSource))
	b.WithVariable(labelValues("cluster", "Cluster", "label_values({"+present+"}, cluster)").
		Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	namespaces := "label_values({" + present + ",cluster=~`${cluster:regex}`}, namespace)"
	b.WithVariable(labelValues("namespace", "Namespace", namespaces).
		Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	b.WithVariable(labelValues("job", "Job", "label_values({"+present+","+place+"}, job)").
		Regex(`/^(.*?)(?:-seconds)?$/`).Multi(true).IncludeAll(true).AllValue(".+").Current(all))
	b.WithVariable(labelValues("instance", "Instance", "label_values({"+present+","+place+","+jobs+"}, instance)").
		Multi(true).IncludeAll(true).AllValue(".+").Current(all))
}

// present selects metrics; every target has at least one of them.
const present = `__name__=~"windowstat_(pass_total|resources|persecond_pass)"`

// resources is the query for the names of all resources.
const resources = `label_values({__name__=~"windowstat_(pass_total|persecond_pass)",` + secondsJob + `}, resource)`

// quotable matches the names that a selector can contain. A backtick would end the raw string, and the server would
// reject all queries of the dashboard. Names with a backtick appear only in the graphs of all resources.
const quotable = "/^([^`]*)$/"

// defaultSource selects Grafana's default data source. Without a selection Grafana takes the first data source by name.
var defaultSource = dashboard.VariableOption{
	Selected: cog.ToPtr(true),
	Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr("default")},
	Value:    dashboard.StringOrArrayOfString{String: cog.ToPtr("default")},
}

// all selects every value.
var all = dashboard.VariableOption{
	Selected: cog.ToPtr(true),
	Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
	Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
}

func labelValues(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr(query)}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalCaseInsensitiveAsc)
}

// withAnnotations marks the events that change graphs: the start of a process and a reload of limits.
func (b *board) withAnnotations() {
	for _, a := range []struct{ name, title, expr, color string }{
		{"Starts", "{{instance}} started", `process_start_time_seconds{` + job + `} * 1000`, "blue"},
		{
			"Limits", "{{instance}} took new limits",
			`(windowstat_limits_last_reload_success_timestamp_seconds{` + job + `} > 0) * 1000`, "purple",
		},
	} {
		b.Annotation(dashboard.NewAnnotationQueryBuilder().
			Name(a.name).
			Datasource(source).
			Enable(true).
			IconColor(a.color).
			Expr(a.expr).
			Target(prometheus.NewDataqueryBuilder().RefId("Anno").Expr(a.expr)).
			TitleFormat(a.title).
			Step("60s").
			UseValueForTime(true))
	}
}

// withTotal adds the variable [totalPrefix]. The selector of all resources also matches a series without the label
// resource, so the metrics of inbound traffic exist for this selector only.
func (b *board) withTotal(resources string) {
	b.hidden("total",
		`label_values({__name__=~"windowstat_(inbound_pass_total|persecond_inbound_pass)",`+
			secondsJob+resources+`}, __name__)`,
		"/(inbound_)/")
}

// withCoarse adds the variable [coarse]: a part of the name of a fine histogram, or nothing without one. A native
// histogram has no label le, and a histogram of VictoriaMetrics has the label vmrange.
func (b *board) withCoarse(resources string) {
	b.hidden("fine",
		`label_values({__name__=~"windowstat_(rt_seconds|persecond_rt_distribution_seconds_bucket)",le="",`+
			secondsJob+resources+`}, __name__)`,
		"/rt(?:_distribution)?(_seconds)/")
}

// hidden adds a variable that users do not see. Its only value is the part of a label that regex captures, or nothing.
// The value is the same for the whole time shown.
func (b *board) hidden(name, query, regex string) {
	b.WithVariable(labelValues(name, name, query).Regex(regex).Hide(dashboard.VariableHideHideVariable))
}

// toResource returns the URL of the dashboard of a resource. word is Grafana's variable for the name of the resource.
func toResource(word string) string {
	return "/d/windowstat-resource?${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}" +
		"&${job:queryparam}&${instance:queryparam}" +
		"&var-resource=${" + word + ":percentencode}&${__url_time_range}"
}

// links turns the cells of a table column into links. Grafana's editor writes most fields of a
// [dashboard.DashboardLink] here, but the type differs.
func links(title, url string, elsewhere bool) []dashboard.DynamicConfigValue {
	link := map[string]any{"title": title, "url": url, "targetBlank": elsewhere}
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{link}}}
}
