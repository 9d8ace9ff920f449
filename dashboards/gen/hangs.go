package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/windowstat/windowstat/internal/trouble"
)

// usual is the lowest rate of calls at which ten seconds without an ended call are a hang. Package trouble uses the
// same minimum: about twenty calls are expected in this time.
const usual = 20 / trouble.Window

// hanging keeps the values of targets and resources with calls in flight that do not end: either no call ended in the
// last ten seconds, or the oldest call is far older than any call that ended. The live page and the alerts use the
// same thresholds. hanging compares with the calls in the time shown instead of ten minutes, so a longer hang remains
// visible.
//
// expr and most selectors come from [view.unselected]. Only the selectors of calls that ended in the time shown contain
// the selection of the user. Every hang is joined with such a series, so the result contains only selected targets.
func (v view) hanging(expr string) string {
	window := fmt.Sprintf("[%ds999ms]", trouble.Window-1) // exactly ten seconds, also on Prometheus 2
	all := v.unselected()
	none := all.sum("min_over_time("+all.second("in_flight")+window+")") + " > 0 unless " +
		all.sum("sum_over_time("+all.second("complete")+window+")") + " > 0 and " +
		fmt.Sprintf("%s >= %d", v.sum("avg_over_time("+v.second("complete")+"[$__range])"), usual)
	old := fmt.Sprintf(
		"%s >= clamp_min(%d * %s, %v)",
		all.oldest(),
		trouble.AgeFactor,
		v.slowest("$__range"),
		trouble.OldAge.Seconds(),
	)
	return expr + " and (" + none + " or " + old + ")"
}

// oldest returns the age of the oldest call in flight at the last scrape, among calls with a context.
func (v view) oldest() string { return v.max(v.metric("in_flight_oldest_seconds")) }

// unmeasured is the name of the row for data without calls in flight, for example from Sentinel's metric log. Without
// this row, the table would be empty, and an empty table means that no call hangs.
const unmeasured = "calls in flight are not measured"

// hangs returns the table of the calls that hang, with a row for each value of the label. If the data source has no
// metrics of calls in flight, the table has the row unmeasured.
func (v view) hangs(id uint32, label, title string, name []dashboard.DynamicConfigValue) cog.Builder[dashboard.Panel] {
	each := v
	each.by = "instance, resource"
	all := each.unselected()
	inFlight := all.sum("last_over_time(" + all.second("in_flight") + "[999ms])")
	average := all.sum(all.metric("in_flight_elapsed_seconds")) + " / " + all.sum(all.metric("in_flight"))
	v.by = label
	none := `-1 * label_replace(absent(` + v.second("in_flight") + `), "` + label + `", "` + unmeasured + `", "", "")`
	unknown := dashboard.ValueMap{Type: "value", Options: map[string]dashboard.ValueMappingResult{
		"-1": {Text: cog.ToPtr("unknown"), Color: cog.ToPtr("purple")},
	}}
	return list(id, "Hangs", "In flight",
		"Calls in flight that do not end, with the most calls first: "+
			"no call ended in the last ten seconds, although calls usually end in each of them, "+
			"or the oldest call is at least 10 seconds old, "+
			"and three times as old as any call that ended in the time shown. Age: "+
			"of the oldest call with a context at the last scrape, or the average of all calls.").
		Interval("1s").
		Unit(calls).
		NoValue("nothing hangs").
		WithTarget(instant(0, v.sum(each.hanging(inFlight))+" or "+none)).
		WithTarget(instant(1, v.max(each.hanging("("+all.oldest()+" or "+average+")")))).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{
				"Time": true,
			}, "indexByName": map[string]int{label: 0, "Value #A": 1, "Value #B": 2},
			"renameByName": map[string]string{label: title, "Value #A": "In flight", "Value #B": "Age"},
		}}).
		OverrideByName("In flight", []dashboard.DynamicConfigValue{
			{Id: "mappings", Value: []dashboard.ValueMap{unknown}},
			{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
			{Id: "custom.width", Value: 84},
		}).
		OverrideByName("Age", []dashboard.DynamicConfigValue{
			{Id: "unit", Value: duration},
			{Id: "decimals", Value: 0},
			{Id: "custom.width", Value: 84},
			{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
			{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": "red"}},
		}).
		OverrideByName(title, name)
}
