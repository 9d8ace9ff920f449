package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// A column of the table of resources. A column with a color has bars. Only one column can have bars, because all bars
// of a table share a scale.
type column struct{ title, unit, color, expr string }

// overviewTable adds the table with a row for each resource.
func (b *board) overviewTable(v view) {
	// The last column has no title: it is the p99 from vmrange, and a part of the column p99.
	columns := []column{
		{"Peak second", calls, "blue", peak(v.inSecond("pass"), "$__range")},
		{"Average", perSecondUnit, "", v.mean("pass_total")},
		{"Of limit", share, "", v.ofLimit("pass_peak", "limit_qps")},
		{"Refused", share, "orange", ratio(v.mean("block_total"), v.mean("pass_total")+" + "+v.mean("block_total"))},
		{"Failed", share, "red", ratio(v.mean("exception_total"), v.mean("complete_total"))},
		{"p99", duration, "", v.quantile(native, 0.99, "$__range")},
		{"Slowest", duration, "", v.slowest("$__range")},
		{"In flight", "none", "", v.mean("in_flight_seconds_total")},
		{"p99 at most", duration, "", v.atMost(0.99, "$__range")}, // last: empty if p99 has a value
		{"", "", "", v.quantile(vmrange, 0.99, "$__range")},
	}
	p := list(10, "Resources", "Peak second",
		"Every resource, over the time shown. Of limit: "+
			"how much of the limit on QPS that was in force a target used in its highest sliding second. "+
			"In flight: on average. p99: to 9%. p99 at most: where the server has only classic histograms. "+
			"A click on a name leads to its seconds.").
		Interval("1s").
		Unit(number).
		NoValue(noSeconds)

	names := map[string]string{"resource": "Resource"}
	order := map[string]int{"resource": 0}
	var parts []string // of the column p99
	hidden := map[string]bool{"Time": true}
	for i, c := range columns {
		p.WithTarget(instant(i, c.expr))
		value := "Value #" + string(rune('A'+i))
		if c.title == "p99" || c.title == "" {
			parts = append(parts, value)
			hidden[value] = true
			value = "p99"
		}
		if c.title != "" {
			names[value], order[value] = c.title, i+1
			p.OverrideByName(c.title, c.properties())
		}
	}
	p.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	p.WithTransformation(dashboard.DataTransformerConfig{Id: "calculateField", Options: map[string]any{
		"alias": "p99", "mode": "reduceRow", "reduce": map[string]any{"reducer": "max", "include": parts},
	}})
	p.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "indexByName": order, "renameByName": names,
	}})
	p.OverrideByName("Resource", links("This resource second by second", toResource("__data.fields.Resource"), false))
	b.add(width, 12, p)
}

// properties returns the display options of a column.
func (c column) properties() []dashboard.DynamicConfigValue {
	// Columns of numbers have a fixed width, and columns of names take the rest. With a minimum width instead, Grafana
	// takes no space from other columns, and the last column does not fit.
	wide := max(95, 10*len(c.title))
	var bar []dashboard.DynamicConfigValue
	switch {
	case c.unit == share && c.color != "": // errors stand out
		bar = []dashboard.DynamicConfigValue{
			{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
			{Id: "thresholds", Value: map[string]any{"mode": "absolute", "steps": []any{
				map[string]any{"color": "text", "value": nil}, map[string]any{"color": c.color, "value": 0.01},
			}}},
		}
	case c.color != "":
		wide = 126
		bar = []dashboard.DynamicConfigValue{
			{
				Id:    "custom.cellOptions",
				Value: map[string]string{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"},
			},
			{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": c.color}},
			{Id: "min", Value: 0},
		}
	}
	all := append(bar,
		dashboard.DynamicConfigValue{Id: "unit", Value: c.unit},
		dashboard.DynamicConfigValue{Id: "custom.width", Value: wide})
	switch c.unit {
	case calls:
		all = append(all, dashboard.DynamicConfigValue{Id: "decimals", Value: 0})
	case duration, share:
		all = append(all, dashboard.DynamicConfigValue{Id: "decimals", Value: 1})
	}
	if m := small(c.unit); m != nil {
		all = append(all, dashboard.DynamicConfigValue{Id: "mappings", Value: m})
	}
	return all
}
