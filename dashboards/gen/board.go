package main

import (
	"errors"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// A board is a dashboard that is being made: its panels are laid out from left to right and from top to bottom.
type board struct {
	*dashboard.DashboardBuilder
	items []dashboard.PanelOrRowPanel
	x, y  uint32 // where the next panel goes
	line  uint32 // height of the line it is in
	rows  uint32
	errs  []error
}

// A file is what Grafana reads from one.
//
//lint:ignore SA1019 dashboards of the newer schema cannot be provisioned from files
type file = dashboard.Dashboard

// width is how many columns a Grafana dashboard has.
const width = 24

// delay is how far behind the present the dashboards of seconds end: the newest seconds come with the next scrape, and
// until every target was scraped their sum is too small.
const delay = "20s"

func newBoard(name, title, description string) *board {
	//lint:ignore SA1019 as above
	b := dashboard.NewDashboardBuilder(title).
		Uid("windowstat-"+name).
		Description(description).
		Tags([]string{"windowstat"}).
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
			Tags([]string{"windowstat"}).
			IncludeVars(true).
			KeepTime(true))
	return &board{DashboardBuilder: b}
}

// row begins a row with a heading. Its id is above those of panels.
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

// closedRow begins a row that is closed until somebody opens it, and asks the server nothing: for what only some have. Grafana cannot
// hide a row: one that is repeated for each value of a variable is there, too, when there is none.
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

// build is the finished dashboard.
func (b *board) build() (file, error) {
	d, err := b.Build()
	if err := errors.Join(append(b.errs, err)...); err != nil {
		return d, fmt.Errorf("%s: %w", *d.Title, err)
	}
	d.Panels = b.items
	// The SDK puts what is to be seen at the top behind a button.
	for i := range d.Links {
		d.Links[i].Placement = nil
	}
	for i := range d.Annotations.List {
		d.Annotations.List[i].Placement = nil
	}
	for i, v := range d.Templating.List {
		if v.Type == dashboard.VariableTypeConstant {
			d.Templating.List[i].Hide = cog.ToPtr(dashboard.VariableHideHideVariable)
		}
	}
	return d, nil
}
