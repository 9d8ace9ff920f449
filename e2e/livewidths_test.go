package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// The widths of windows in pixels: a phone, tablets, half a screen, a laptop and a large screen; and the widths just
// above the limits in app.css, which leave the least space for names.
var (
	pictureWidths = []int64{320, 641, 760, 830, 920, 1280, 1600}
	limitWidths   = []int64{353, 737, 865, 993, 1201}
)

// longRoute is the name of a resource that needs several lines in a narrow window.
const longRoute = "GET /organisations/{organisation}/repositories/{repository}/pull-requests/{number}"

// newHang returns a service whose database has not responded for some seconds: three routes wait for it, and two others
// are healthy.
func newHang(t *testing.T, seconds int64) *paced {
	t.Helper()
	const before = 200 // seconds without trouble
	routes := []string{"GET /", "GET /products/{id}", "GET /search", "POST /orders", longRoute}
	queries := []string{"", "db: products", "db: products", "db: orders", "db: products"}
	p := newPaced(t, time.Now().Add(-time.Duration(before+seconds)*time.Second), routes, collector.Options{})
	hangs := p.second + before
	p.calls = func(int, int64) count { return count{} } // ticked makes the calls
	p.ticked = func(route int, second int64, _ count) {
		for n := range 20 {
			origin := collector.Origin([]string{"web", "mobile"}[n%2])
			ctx, e, err := p.stats.Enter(t.Context(), routes[route], collector.Inbound(), origin)
			if err != nil {
				t.Error(err)
				return
			}
			var q collector.Entry
			if queries[route] != "" {
				if _, q, err = p.stats.Enter(ctx, queries[route]); err != nil {
					t.Error(err)
					return
				}
				if second >= hangs && queries[route] == "db: products" {
					continue
				}
			}
			p.clock.set(p.clock.now().Add(time.Millisecond))
			if queries[route] != "" {
				q.Exit(nil)
			}
			e.Exit(nil)
		}
	}
	for p.second < hangs+seconds {
		p.tick()
	}
	return p
}

// layoutErrors lists texts that are wider than their cells, names without space, and gaps in the grids of charts.
const layoutErrors = `(() => {
	const errors = [], box = e => e.getBoundingClientRect();
	const shown = q => [...document.querySelectorAll(q)].filter(e => e.checkVisibility());
	for (const e of shown('.table th, .table td:not(.name, .spark), dt, dd, figcaption, .shares td, #alarm'))
		if (e.scrollWidth > e.clientWidth)
			errors.push(e.className + ' ' + e.textContent + ' needs ' + e.scrollWidth + ' pixels of ' + e.clientWidth);
	const least = innerWidth > 640 ? 170 : innerWidth / 4;
	for (const e of shown('.table .name'))
		if (e.clientWidth < least) errors.push('names have only ' + e.clientWidth + ' pixels');
	for (const grid of shown('.charts')) {
		const rows = new Map();
		for (const e of grid.children) rows.set(box(e).top, [...rows.get(box(e).top) || [], e]);
		for (const row of rows.values())
			if (box(grid).right - box(row.at(-1)).right > 1)
				errors.push('after ' + row.at(-1).textContent.trim().slice(0, 40) + ' is a gap');
	}
	return errors;
})()`

// liveWidths checks that everything on the page is readable at all widths, during a hang. It keeps pictures in light
// and dark, for people to check.
func liveWidths(t *testing.T, browser context.Context) {
	p := newHang(t, 15)
	t.Cleanup(p.start(t))
	x := openTab(t, browser, serveLive(t, p.stats, nil))
	for _, subject := range []string{"all", "db: products"} {
		if subject != "all" {
			x.run(t, fmt.Sprintf(`choose(%q)`, subject))
			x.await(t, `!byId('details').hidden`)
		}
		x.await(
			t,
			`document.querySelectorAll('#rows tr').length === 7 && byId('alarm').textContent.includes('hangs since')`,
		)
		for i, width := range slices.Concat(pictureWidths, limitWidths) {
			x.resize(t, width, 900, width < 640)
			for _, scheme := range []string{"light", "dark"} {
				if i < len(pictureWidths) {
					x.scheme(t, scheme)
					x.keep(t, fmt.Sprintf("hang-%s-%d-%s", strings.TrimPrefix(subject, "db: "), width, scheme))
				}
			}
			for _, e := range tell[[]string](t, x, layoutErrors) {
				t.Errorf("%s, %d pixels: %s", subject, width, e)
			}
		}
	}
}
