package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// detail is what the per-second page does not have of a resource: the limits in force, and refusals by reason since the start. It
// comes from the metrics page above it.
type detail struct {
	of     key
	limits map[string][]float64 // by what they limit, of each target
	blocks map[string]float64   // by reason, or by what the metrics are split by, which have no reasons then
	err    error
}

// readDetail prepares to read the detail of a line, of all its targets.
func readDetail(ctx context.Context, l line) (read func() detail) {
	pages := make([]*url.URL, len(l.parts)) // as they are now
	for i, p := range l.parts {
		pages[i] = p.target.state.page
	}
	return func() detail {
		d := detail{of: l.key(), limits: map[string][]float64{}, blocks: map[string]float64{}}
		for i, p := range l.parts {
			if err := d.read(ctx, p.target.reader.endpoint, pages[i], l.name); err != nil {
				d.err = fmt.Errorf("%s: %w", p.target.name, err)
			}
		}
		return d
	}
}

func (d *detail) read(ctx context.Context, e *Endpoint, seconds *url.URL, resource string) error {
	if seconds == nil || path.Base(seconds.Path) != "seconds" {
		return errors.New("not known without a metrics page above the per-second page")
	}
	metrics, _, err := e.get(ctx, e.at(path.Dir(seconds.Path)), nil)
	if err != nil {
		return err
	}
	namespace := ""
	for name := range metrics {
		if before, ok := strings.CutSuffix(name, overflow); ok && (namespace == "" || len(before) < len(namespace)) {
			namespace = before
		}
	}
	each := func(name string, do func(labels map[string]string, v float64)) {
		for _, x := range metrics[namespace+name].GetMetric() {
			labels := map[string]string{}
			for _, l := range x.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["resource"] == resource {
				do(labels, valueOf(x))
			}
		}
	}
	for name, unit := range map[string]string{"limit_qps": "calls/s", "limit_concurrency": "in flight"} {
		each(name, func(_ map[string]string, v float64) { d.limits[unit] = append(d.limits[unit], v) })
	}
	each("block_total", func(labels map[string]string, v float64) {
		by, there := labels["reason"]
		if !there {
			delete(labels, "resource")
			var all []string
			for _, name := range slices.Sorted(maps.Keys(labels)) {
				all = append(all, name+"="+cmp.Or(labels[name], "(none)"))
			}
			by = strings.Join(all, ",")
		}
		d.blocks[by] += v
	})
	return nil
}

// overflow is a metric that every page of windowstat about itself has. Others whose names end so have more before it.
const overflow = "overflow_events_total"

// lines tell it.
func (d *detail) lines() []string {
	if d.err != nil {
		return []string{"limits and refusals: " + d.err.Error()}
	}
	var limits, blocks []string
	for _, unit := range slices.Sorted(maps.Keys(d.limits)) {
		all := d.limits[unit]
		text := number(slices.Min(all))
		if slices.Max(all) > slices.Min(all) {
			text += " to " + number(slices.Max(all))
		}
		if len(all) > 1 {
			unit += fmt.Sprintf(" in each of %d", len(all))
		}
		limits = append(limits, text+" "+unit)
	}
	reasons := slices.SortedFunc(maps.Keys(d.blocks), func(x, y string) int { return cmp.Or(cmp.Compare(d.blocks[y], d.blocks[x]), cmp.Compare(x, y)) })
	for _, reason := range reasons {
		if n := d.blocks[reason]; n > 0 {
			blocks = append(blocks, clean(cmp.Or(reason, "(none)"))+" "+strconv.FormatFloat(n, 'f', 0, 64))
		}
	}
	return []string{
		"limits: " + cmp.Or(strings.Join(limits, ", "), "none"),
		"refused since the start: " + cmp.Or(strings.Join(blocks, ", "), "none"),
	}
}
