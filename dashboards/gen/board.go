package main

import (
	"errors"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// A board builds a dashboard. It lays panels out from left to right and from top to bottom.
type board struct {
	*dashboard.DashboardBuilder
	items []dashboard.PanelOrRowPanel
	x, y  uint32 // position of the next panel
	line  uint32 // height of the current line
	rows  uint32
	errs  []error
}

// A file is a dashboard in the format of Grafana's provisioning.
//
//lint:ignore SA1019 dashboards of the newer schema cannot be provisioned from files
type file = dashboard.Dashboard

// width is the number of columns of a Grafana dashboard.
const width = 24

// delay is the distance between the current time and the end of dashboards of seconds. The newest seconds arrive with
// the next scrape, and their sum is too small until every target was scraped.
const delay = "20s"

// tag is the tag of the dashboards, and the beginning of their uids.
const tag = "windowstat"

func newBoard(name, title, description string) *board {
	//lint:ignore SA1019 as above
	b := dashboard.NewDashboardBuilder(title).
		Uid(tag+"-"+name).
		Description(description).
		Tags([]string{tag}).
		Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-15m", "now-"+delay).
		Timepicker(dashboard.NewTimePickerBuilder().
			NowDelay(delay).
			RefreshIntervals([]string{"5s", "15s", "30s", "1m", "5m"})).
		Timezone("browser").
		Refresh("15s").
		Link(dashboard.NewDashboardLinkBuilder("windowstat").
			Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).
			IncludeVars(true).
			KeepTime(true))
	return &board{DashboardBuilder: b}
}

// row begins a row with a heading. The ids of rows are higher than all panel ids.
func (b *board) row(title string) {
	b.newLine()
	b.rows++
	r, err := dashboard.NewRowBuilder(title).
		Id(1000 + b.rows).
		GridPos(dashboard.GridPos{X: 0, Y: b.y, W: width, H: 1}).Build()
	b.errs = append(b.errs, err)
	r.Panels = []dashboard.Panel{}
	b.items = append(b.items, dashboard.PanelOrRowPanel{RowPanel: &r})
	b.y++
}

// closedRow begins a row for optional features. The row is collapsed, and sends no queries until a user opens it.
// Grafana cannot hide a row: even a row that repeats for each value of a variable appears if the variable has no
// values.
func (b *board) closedRow(title string, w, h uint32, panels ...cog.Builder[dashboard.Panel]) {
	b.row(title)
	first, y := len(b.items), b.y
	row := b.items[first-1].RowPanel
	b.add(w, h, panels...)
	for _, p := range b.items[first:] {
		row.Panels = append(row.Panels, *p.Panel)
	}
	row.Collapsed = true
	b.items, b.x, b.y, b.line = b.items[:first], 0, y, 0
}

// add puts panels of one size next to each other.
func (b *board) add(w, h uint32, panels ...cog.Builder[dashboard.Panel]) {
	for _, builder := range panels {
		p, err := builder.Build()
		b.errs = append(b.errs, err)
		if b.x+w > width {
			b.newLine()
		}
		p.GridPos = &dashboard.GridPos{X: b.x, Y: b.y, W: w, H: h}
		b.items = append(b.items, dashboard.PanelOrRowPanel{Panel: &p})
		b.x += w
		b.line = max(b.line, h)
	}
}

func (b *board) newLine() {
	b.y += b.line
	b.x, b.line = 0, 0
}

// build returns the finished dashboard.
func (b *board) build() (file, error) {
	d, err := b.Build()
	if err := errors.Join(append(b.errs, err)...); err != nil {
		return d, fmt.Errorf("%s: %w", *d.Title, err)
	}
	d.Panels = b.items
	// The SDK moves links, variables and annotations from the top of the dashboard into a menu; reset that.
	for i := range d.Links {
		d.Links[i].Placement = nil
	}
	for i := range d.Annotations.List {
		d.Annotations.List[i].Placement = nil
	}
	for i, v := range d.Templating.List {
		if v.Type == dashboard.VariableTypeConstant {
			d.Templating.List[i].Hide = cog.ToPtr(dashboard.VariableHideHideVariable)
		} else if v.Hide != nil {
			d.Templating.List[i].SkipUrlSync = cog.ToPtr(true) // a link must not replace the result of its query
		}
	}
	return d, nil
}
