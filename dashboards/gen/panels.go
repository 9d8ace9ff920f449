package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// A head holds the common properties of panels. The id is assigned by hand and never reused, because links and alerts
// refer to it.
type head struct {
	id          uint32
	title, unit string
	description string
	none        string // text without data, see nodata.go
}

// Units.
const (
	perSecondUnit = "reqps"       // calls a second, on average
	calls         = "locale"      // calls in one second, a whole number: 1,234 and not 1.23 K
	share         = "percentunit" // of one
	duration      = "s"
	number        = "short"
	size          = "bytes"
)

// series returns a graph of metrics of /metrics.
func series(h head, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(h.unit).Description(h.description).NoValue(h.none).
		OverrideByFieldType("number", blank).
		Datasource(source).
		AxisSoftMin(0). // the axis begins below 0 if a value is negative
		LineWidth(1).
		FillOpacity(0).
		ShowPoints(common.VisibilityModeNever).
		Thresholds(plain()).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Tooltip(common.NewVizTooltipOptionsBuilder().
			Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			Calcs([]string{"max"}).SortBy("Max").SortDesc(true))
	for i, q := range queries {
		p.WithTarget(q.target(i))
	}
	return p
}

// seconds returns a graph of metrics of /metrics/seconds. Its step is a second if the graph is wide enough. The
// timestamp of a second is its beginning, so its value lasts until the next second.
func seconds(h head, queries ...query) *timeseries.PanelBuilder {
	return series(h, queries...).Interval("1s").LineInterpolation(common.LineInterpolationStepAfter)
}

// simple shows the legend of a graph with few lines as a list instead of a table.
func simple(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.Legend(common.NewVizLegendOptionsBuilder().
		ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).
		Calcs([]string{}))
}

// figure returns a panel with a single number.
func figure(h head, expr string) *stat.PanelBuilder { return figures(h, query{expr: expr}) }

// figures returns a panel with a number for each query. Several numbers have names.
func figures(h head, queries ...query) *stat.PanelBuilder {
	p := stat.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(h.unit).Description(h.description).NoValue(h.none).
		Datasource(source).
		Interval("1s").
		ReduceOptions(last()).
		Thresholds(plain()).
		ColorScheme(fixed("text")).
		ColorMode(common.BigValueColorModeValue).
		GraphMode(common.BigValueGraphModeNone)
	if m := small(h.unit); m != nil {
		p.Mappings(m)
	}
	for i, q := range queries {
		q.instant = true
		p.WithTarget(q.target(i))
	}
	return p
}

// small maps positive values too small for the number format to a text such as "< 0.001".
func small(unit string) []dashboard.ValueMapping {
	below := map[string]struct {
		limit float64
		text  string
	}{
		perSecondUnit: {0.001, "< 0.001 req/s"},
		number:        {0.001, "< 0.001"},
		"none":        {0.001, "< 0.001"},
		share:         {0.0001, "< 0.01%"},
	}
	b, ok := below[unit]
	if !ok {
		return nil
	}
	return []dashboard.ValueMapping{{RangeMap: &dashboard.RangeMap{
		Type: "range",
		Options: dashboard.DashboardRangeMapOptions{
			From:   cog.ToPtr(1e-18),
			To:     cog.ToPtr(b.limit),
			Result: dashboard.ValueMappingResult{Text: cog.ToPtr(b.text)},
		},
	}}}
}

// heat returns a heat map of histograms. It shows the native histogram if the server stores it, otherwise the classic
// one. Without a histogram the query returns a zero, because Grafana reports an empty result as an error.
func heat(h head, classic, native string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(perSecondUnit).Description(h.description).NoValue(h.none).
		Datasource(source).
		Interval("1s").
		MaxDataPoints(240). // more cells would be too thin to see
		WithTarget(query{legend: "{{le}}", expr: classic + " or on () vector(0)", heatmap: true}.target(0)).
		WithTarget(query{expr: native}.target(1)).
		Calculate(false).
		// A color scheme has no exponent: next to a burst, a calm minute would be invisible.
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeOpacity).
			Fill("dark-orange").Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.3).Steps(64).Min(0)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(h.unit).AxisPlacement(common.AxisPlacementLeft)).
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)).
		CellValues(heatmap.NewCellValuesBuilder().Unit(perSecondUnit)).
		FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true)).
		ShowLegend()
}

// plain returns thresholds without a color. Grafana's default thresholds turn red above 80.
func plain() *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().
		Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: "text"}})
}

// above returns thresholds that color values higher than a limit.
func above(limit float64, color string) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().
		Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: "green"}, {Color: color, Value: &limit}})
}

// byThreshold colors values by the thresholds.
func byThreshold() *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)
}

func fixed(color string) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(color)
}

func last() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Values(false)
}

// quiet sets the upper end of a graph of errors, normally zero, to 1. Grafana's default axis ends at 100.
func quiet(p *timeseries.PanelBuilder) *timeseries.PanelBuilder { return simple(p).AxisSoftMax(1) }

// colored assigns a fixed color to each named line, the same in every graph.
func colored(p *timeseries.PanelBuilder, colors ...string) *timeseries.PanelBuilder {
	p.FillOpacity(10)
	for i := 0; i < len(colors); i += 2 {
		p.OverrideByName(colors[i], []dashboard.DynamicConfigValue{{
			Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": colors[i+1]},
		}})
	}
	return p
}

// limited draws the named line as a limit: red and dashed.
func limited(p *timeseries.PanelBuilder, name string) *timeseries.PanelBuilder {
	return p.OverrideByName(name, []dashboard.DynamicConfigValue{
		{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": "red"}},
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 6}}},
		{Id: "custom.fillOpacity", Value: 0},
	})
}
