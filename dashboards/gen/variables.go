package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// source is the data source of everything: the one that is chosen at the top. A name would only be right in one Grafana.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// withVariables adds the data source, and what tells targets apart. Without the labels cluster and namespace nothing but All
// is there to choose, which an empty label matches.
//
// The per-second endpoint usually has a job of its own, shop-seconds beside shop. The expression removes the suffix, so that
// both are one entry in the list; see [perSecond].
func (b *board) withVariables() {
	b.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus").Current(defaultSource))
	b.WithVariable(labelValues("cluster", "Cluster", "label_values({"+present+"}, cluster)").
		Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	b.WithVariable(labelValues("namespace", "Namespace", "label_values({"+present+",cluster=~`${cluster:regex}`}, namespace)").
		Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	b.WithVariable(labelValues("job", "Job", "label_values({"+present+","+place+"}, job)").
		Regex(`/^(.*?)(?:-seconds)?$/`).Multi(true).IncludeAll(true).AllValue(".+").Current(all))
	b.WithVariable(labelValues("instance", "Instance", "label_values({"+present+","+place+","+jobs+"}, instance)").
		Multi(true).IncludeAll(true).AllValue(".+").Current(all))
}

// present selects metrics that targets have at least one of.
const present = `__name__=~"windowstat_(pass_total|resources|persecond_pass)"`

// resources are the values of a variable for resources.
const resources = `label_values({__name__=~"windowstat_(pass_total|persecond_pass)",` + secondsJob + `}, resource)`

// quotable selects the names that a selector can contain. A backtick would end its raw string, and the server would
// reject all queries of the dashboard. Names with a backtick are still in the graphs of all resources.
const quotable = "/^([^`]*)$/"

// defaultSource is the choice of Grafana's default data source: without one it takes the first by name.
var defaultSource = dashboard.VariableOption{
	Selected: cog.ToPtr(true),
	Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr("default")},
	Value:    dashboard.StringOrArrayOfString{String: cog.ToPtr("default")},
}

// all is the choice of everything.
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

// withAnnotations marks the moments after which graphs look different: a process began, limits were changed.
func (b *board) withAnnotations() {
	for _, a := range []struct{ name, title, expr, color string }{
		{"Starts", "{{instance}} started", `process_start_time_seconds{` + job + `} * 1000`, "blue"},
		{"Limits", "{{instance}} took new limits", `(windowstat_limits_last_reload_success_timestamp_seconds{` + job + `} > 0) * 1000`, "purple"},
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

// toResource is the URL of a resource's own dashboard. The word is Grafana's for the name.
func toResource(word string) string {
	return "/d/windowstat-resource?${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}&${job:queryparam}&${instance:queryparam}" +
		"&var-resource=${" + word + ":percentencode}&${__url_time_range}"
}

// links makes cells of a table links. It is no [dashboard.DashboardLink], though Grafana's editor writes most of the same fields.
func links(title, url string, elsewhere bool) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{{"title": title, "url": url, "targetBlank": elsewhere}}}}
}
