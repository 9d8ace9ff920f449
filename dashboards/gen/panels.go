package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// A head is what every panel has. The id is given by hand and never again to another panel: links and alerts refer to it.
type head struct {
	id          uint32
	title, unit string
	description string
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

// series is a graph of what /metrics has.
func series(h head, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(h.unit).Description(h.description).
		Datasource(source).
		AxisSoftMin(0). // and below, where something is negative
		LineWidth(1).
		FillOpacity(0).
		ShowPoints(common.VisibilityModeNever).
		Thresholds(plain()).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			Calcs([]string{"max"}).SortBy("Max").SortDesc(true))
	for i, q := range queries {
		p.WithTarget(q.target(i))
	}
	return p
}

// seconds is a graph of what /metrics/seconds has: its points are a second apart if there is room for them. A second has the time
// at which it begins, so its value lasts until the next one.
func seconds(h head, queries ...query) *timeseries.PanelBuilder {
	return series(h, queries...).Interval("1s").LineInterpolation(common.LineInterpolationStepAfter)
}

// simple is a graph with few lines, which need no table.
func simple(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.Legend(common.NewVizLegendOptionsBuilder().
		ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{}))
}

// figure is one number.
func figure(h head, expr string) *stat.PanelBuilder { return figures(h, query{expr: expr}) }

// figures are numbers, which have names where there are several.
func figures(h head, queries ...query) *stat.PanelBuilder {
	p := stat.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(h.unit).Description(h.description).
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

// small are texts for what is too small to be read as a number, and is not nothing.
func small(unit string) []dashboard.ValueMapping {
	below := map[string]struct {
		limit float64
		text  string
	}{perSecondUnit: {0.001, "< 0.001 req/s"}, number: {0.001, "< 0.001"}, "none": {0.001, "< 0.001"}, share: {0.0001, "< 0.01%"}}
	b, ok := below[unit]
	if !ok {
		return nil
	}
	return []dashboard.ValueMapping{{RangeMap: &dashboard.RangeMap{
		Type:    "range",
		Options: dashboard.DashboardRangeMapOptions{From: cog.ToPtr(1e-18), To: cog.ToPtr(b.limit), Result: dashboard.ValueMappingResult{Text: cog.ToPtr(b.text)}},
	}}}
}

// heat is a heat map of histograms, classic and native: it shows the native one where the server keeps it. Without any histogram,
// one zero is left, for Grafana takes nothing at all for an error.
func heat(h head, classic, native string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Id(h.id).Title(h.title).Unit(perSecondUnit).Description(h.description).
		Datasource(source).
		Interval("1s").
		MaxDataPoints(240). // or cells would be too thin to see
		WithTarget(query{"{{le}}", classic + " or on () vector(0)", false, true}.target(0)).
		WithTarget(query{"", native, false, false}.target(1)).
		Calculate(false).
		// A scheme has no exponent, and shows a calm minute as nothing beside a burst.
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeOpacity).
			Fill("dark-orange").Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.3).Steps(64).Min(0)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(h.unit).AxisPlacement(common.AxisPlacementLeft)).
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)).
		CellValues(heatmap.NewCellValuesBuilder().Unit(perSecondUnit)).
		FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true)).
		ShowLegend()
}

// plain are thresholds that colour nothing: Grafana's own turn red above 80.
func plain() *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().
		Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: "text"}})
}

// above are thresholds that colour what is higher than a limit.
func above(limit float64, color string) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().
		Mode(dashboard.ThresholdsModeAbsolute).
		Steps([]dashboard.Threshold{{Color: "green"}, {Color: color, Value: &limit}})
}

// byThreshold colours by the thresholds.
func byThreshold() *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)
}

func fixed(color string) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(color)
}

func last() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Values(false)
}

// quiet is a graph of what should be zero. Without an upper end, Grafana's axis goes to 100.
func quiet(p *timeseries.PanelBuilder) *timeseries.PanelBuilder { return simple(p).AxisSoftMax(1) }

// colored gives the lines of a name their color, in every graph the same.
func colored(p *timeseries.PanelBuilder, colors ...string) *timeseries.PanelBuilder {
	p.FillOpacity(10)
	for i := 0; i < len(colors); i += 2 {
		p.OverrideByName(colors[i], []dashboard.DynamicConfigValue{{
			Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": colors[i+1]},
		}})
	}
	return p
}

// limited draws the line of that name as what it is: a limit.
func limited(p *timeseries.PanelBuilder, name string) *timeseries.PanelBuilder {
	return p.OverrideByName(name, []dashboard.DynamicConfigValue{
		{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": "red"}},
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 6}}},
		{Id: "custom.fillOpacity", Value: 0},
	})
}
