package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// liveMany views 300 resources whose order changes each second. The page shows some of them, and finds the others. Rows
// under the pointer keep their positions, and their numbers are updated, even if other resources have become busier.
func liveMany(t *testing.T, browser context.Context) {
	const resources, page = 300, 50
	var names []string
	for i := range resources {
		names = append(names,
			fmt.Sprintf("GET /organisations/{organisation}/projects/{project}/members/{member}/%03d", i))
	}
	p := newPaced(t, time.Now(), names, collector.Options{})
	p.calls = func(resource int, second int64) count {
		return count{block: 1 + (resource*7+int(second)*131)%resources}
	}
	t.Cleanup(p.start(t))
	x := openTab(t, browser, serveLive(t, p.stats, nil)+"#sort=block")
	x.await(t, fmt.Sprintf(`document.querySelectorAll('#rows tr').length === %d`, page))
	x.run(t, `window.rowNames = () => [...document.querySelectorAll('#rows button')].map(b => b.textContent)`)
	x.run(t, `window.blocked = () => [...document.querySelectorAll('#rows tr')].map(tr => `+
		`Number(tr.children[3].textContent))`)
	order := func() []string { t.Helper(); return tell[[]string](t, x, `rowNames()`) }
	atOnce := func() []int { t.Helper(); return tell[[]int](t, x, `blocked()`) }
	for range 3 {
		got := atOnce()
		if got[0] != resources || got[page-1] != resources-page+1 ||
			!slices.IsSortedFunc(got, func(a, b int) int { return b - a }) {
			t.Errorf("the busiest rows have %d", got)
		}
		x.await(t, fmt.Sprintf(`received.table.end > %d`, tell[int64](t, x, `received.table.end`)))
	}
	if text := tell[string](t, x, `byId('place').textContent`); text != "1–50 of 300" {
		t.Errorf("the page shows the count %q", text)
	}
	for _, width := range []int64{1600, 1000, 400} {
		highestRow, highestPage := 50.0, 4000.0
		if width == 400 { // the words of trouble may take three lines
			highestRow, highestPage = 60, 5000
		}
		x.resize(t, width, 900, width == 400)
		x.await(t, `document.documentElement.scrollWidth <= innerWidth`)
		if most := tell[float64](t, x,
			`Math.max(...[...document.querySelectorAll('#rows tr')].map(tr => tr.offsetHeight))`); most > highestRow {
			t.Errorf("at %d pixels a row is %v pixels high", width, most)
		}
		if high := tell[float64](t, x, `document.documentElement.scrollHeight`); high > highestPage {
			t.Errorf("at %d pixels the page is %v pixels high", width, high)
		}
		if !tell[bool](t, x, `[...document.querySelectorAll('#rows button')].every(b => b.title === b.textContent)`) {
			t.Error("a name that is cut off has another title")
		}
	}
	x.resize(t, windowWidth, 900, false)
	// Pages follow each other.
	x.run(t, `byId('next').click()`)
	x.await(t, fmt.Sprintf(`inSync() && blocked()[0] === %d`, resources-page))
	if text := tell[string](t, x, `byId('place').textContent`); text != "51–100 of 300" {
		t.Errorf("the second page shows the count %q", text)
	}
	x.run(t, `byId('previous').click()`)
	x.await(t, fmt.Sprintf(`inSync() && blocked()[0] === %d`, resources))
	// Rows stay under the pointer.
	moveTo(t, x, `document.querySelector('#rows tr:nth-child(2) button')`)
	aimed := order()
	x.await(t, `new URLSearchParams(currentQuery()).has('held') && inSync()`)
	for range 3 {
		x.await(t, fmt.Sprintf(`received.table.end > %d`, tell[int64](t, x, `received.table.end`)))
		if got := order(); !slices.Equal(got, aimed) {
			t.Fatalf("under the pointer the rows %q became %q", aimed, got)
		}
		numbers := atOnce()
		slices.Sort(numbers)
		if len(slices.Compact(numbers)) != page {
			t.Errorf("the rows under the pointer have %d", numbers)
		}
	}
	moveTo(t, x, `document.querySelector('h1')`)
	x.await(t, fmt.Sprintf(`inSync() && !heldRows && blocked()[0] === %d`, resources))
	// The search finds resources on pages that were not shown.
	x.run(t, `byId('search').value = 'MEMBER}/27'; byId('search').dispatchEvent(new Event('input'))`)
	x.await(t, `inSync() && rowNames().length === 10`)
	if text := tell[string](t, x, `byId('place').textContent`); text != "1–10 of 10 found" {
		t.Errorf("the search shows the count %q", text)
	}
	x.keep(t, "many-found")
}

// liveAddress opens the address of another page, reloads it, which must keep the view, and goes back.
func liveAddress(t *testing.T, browser context.Context) {
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("resource & <b> %03d", i))
	}
	p := newPaced(t, time.Now().Add(-30*time.Second), names, collector.Options{})
	p.calls = func(resource int, second int64) count { return count{pass: resource % 7, block: resource} }
	for range 30 {
		p.tick()
	}
	t.Cleanup(p.start(t))
	url := serveLive(t, p.stats, nil)
	x := openTab(t, browser, url, "404") // a resource that does not exist
	x.await(t, `document.querySelectorAll('#rows tr').length === 50`)
	state := `[subject, view.sort, view.descending, view.search, view.page, view.minutes, byId('search').value, ` +
		`byId('range').value, rowNames()[0]].join('|')`
	helpers := `window.rowNames = () => [...document.querySelectorAll('#rows button')].map(b => b.textContent)`
	x.run(t, helpers)
	x.run(t, `document.querySelector('#head th:nth-child(4) button').click(); document.querySelector('#head `+
		`th:nth-child(4) button').click()`)
	x.run(t, `byId('search').value = 'b> '; byId('search').dispatchEvent(new Event('input'))`)
	x.run(t, `byId('range').value = 10; byId('range').dispatchEvent(new Event('change'))`)
	x.run(t, `byId('next').click()`)
	x.await(t, `inSync() && rowNames()[0].endsWith('050')`)
	x.run(t, `document.querySelector('#rows button').click()`)
	x.await(t, `inSync() && received.resource.seconds.size > 25`)
	const want = "resource & <b> 050|block|false|b> |1|10|b> |10|resource & <b> 050"
	if got := tell[string](t, x, state); got != want {
		t.Errorf("the page shows %s, want %s", got, want)
	}
	address := tell[string](t, x, `location.href`)
	other := openTab(t, browser, address)
	x.run(t, `window.old = true; location.reload()`)
	for what, x := range map[string]*tab{"a reload": x, "another tab": other} {
		x.await(t, `!window.old && document.readyState === 'complete'`)
		x.await(t, `inSync() && received.resource.seconds.size > 25 && document.querySelectorAll('#rows tr').length `+
			`=== 50`)
		x.run(t, helpers)
		if got := tell[string](t, x, state); got != want {
			t.Errorf("%s shows %s, want %s", what, got, want)
		}
	}
	x.run(t, `byId('pause').click()`)
	paused := tell[int64](t, x, `lastShown()`)
	x.run(t, `window.old = true; location.reload()`)
	x.await(t, `!window.old && document.readyState === 'complete'`)
	x.await(t, `inSync() && paused > 0 && received.table.end === paused + 1 && received.total.seconds.size > 25`)
	if l := x.look(t); l.newest() != paused || l.State != "paused" || len(l.Times) < 25 {
		t.Errorf("after a reload the page shows %d seconds to %d in state %q; it was paused at %d", len(l.Times),
			l.newest(), l.State, paused)
	}
	x.run(t, `byId('pause').click(); byId('back').click()`)
	x.await(t, `inSync() && subject === null`)
	x.run(t, `history.back()`)
	x.await(t, `subject === 'resource & <b> 050'`)
	// The page opens with any text in the address.
	for _, wrong := range []string{
		"#sort=__proto__&page=99999999999&range=7&paused=x&resource=%00",
		"#page=77&search=" + fmt.Sprintf("%0300d", 7), "#%E0%A4%A",
	} {
		x.run(t, fmt.Sprintf(`location.hash = %q`, wrong))
		x.await(t, `inSync() && byId('state').textContent === 'live'`)
	}
}
