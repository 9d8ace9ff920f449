package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// A column of the table of resources.
type column struct{ title, unit, expr string }

// overviewTable has a line for each resource.
func (b *board) overviewTable(v view) {
	columns := []column{
		{"Peak second", calls, peak(v.inSecond("pass"), "$__range")},
		{"Average", perSecondUnit, v.mean("pass_total")},
		{"Peak / average", "none", ratio(peak(v.inSecond("pass"), "$__range"), v.mean("pass_total"))},
		{"Refused", share, ratio(v.mean("block_total"), v.mean("pass_total")+" + "+v.mean("block_total"))},
		{"Failed", share, ratio(v.mean("exception_total"), v.mean("complete_total"))},
		{"p99", duration, v.quantile(0.99, "$__range")},
		{"Slowest", duration, v.max("max_over_time(" + v.second("rt_max_seconds") + "[$__range])")},
		{"Most in flight", number, peak(v.inSecond("in_flight_max"), "$__range")},
	}
	p := table.NewPanelBuilder().
		Id(10).Title("Resources").
		Description("Every resource, over the time shown. A click on a name leads to its seconds.").
		Datasource(source).
		Interval("1s").
		Unit(number).
		Thresholds(plain()).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Peak second").Desc(true)}).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"}))

	names := map[string]string{"resource": "Resource"}
	order := map[string]int{"resource": 0}
	for i, c := range columns {
		q := query{expr: c.expr, instant: true}.target(i, "1s").Format(prometheus.PromQueryFormatTable)
		p.WithTarget(q)
		value := "Value #" + string(rune('A'+i))
		names[value], order[value] = c.title, i+1
		p.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}, {Id: "decimals", Value: decimals(c.unit)}})
	}
	p.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	p.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": map[string]bool{"Time": true}, "indexByName": order, "renameByName": names,
	}})
	link, err := toResource("__data.fields.Resource").Build()
	b.errs = append(b.errs, err)
	p.OverrideByName("Resource", []dashboard.DynamicConfigValue{
		{Id: "links", Value: []dashboard.DashboardLink{link}},
		{Id: "custom.minWidth", Value: 200},
	})
	b.add(width, 12, p)
}

// decimals is how many a column shows.
func decimals(unit string) int {
	if unit == calls {
		return 0
	}
	return 1
}
