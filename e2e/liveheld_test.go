package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/windowstat/windowstat/collector"
)

// liveHeld points at a row whose position in the order changes each second. A click opens the resource that the pointer
// moved to, even if the click is slow: while the pointer is over the table, rows keep their positions, and their
// numbers are updated.
func liveHeld(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"apple", "banana", "cherry"}, collector.Options{})
	p.calls = func(resource int, second int64) count {
		return count{pass: 1 + (resource+int(second))%3}
	}
	t.Cleanup(p.start(t))
	x := openTab(t, browser, serveLive(t, p.stats, nil))
	x.await(t, `document.querySelectorAll('#rows tr').length === 3`)
	x.run(t, `window.rowNames = () => [...document.querySelectorAll('#rows button')].map(b => b.textContent)`)
	x.run(t, `window.passes = name => { const x = received.table.rows.find(x => x.name === name); return x ? `+
		`value(x, PASS) : null; }`)
	order := func() []string { t.Helper(); return tell[[]string](t, x, `rowNames()`) }
	sorted := `(() => { const n = rowNames().map(passes); return n.every((v, i) => !i || n[i - 1] >= v); })()`

	moveTo(t, x, `document.querySelector('#rows tr:nth-child(2) button')`)
	aimed, before := order(), x.look(t)
	x.await(t, fmt.Sprintf(`received.total.newest >= %d`, before.newest()+4))
	p.stats.Resource("date")
	x.await(t, `rowNames().length === 4`)
	if got, want := order(), append(slices.Clone(aimed), "date"); !slices.Equal(got, want) {
		t.Errorf("under the pointer the rows %q became %q; they should be %q", aimed, got, want)
	}
	x.await(t, fmt.Sprintf(`passes(%q) !== %s && document.querySelector('#rows tr:nth-child(2) `+
		`td:nth-child(3)').textContent === String(passes(%q))`,
		aimed[1], before.Rows[1].Pass, aimed[1]))
	// As if the resource had been retired.
	x.run(t, fmt.Sprintf(`received.table.rows = received.table.rows.filter(x => x.name !== %q); `+
		`received.table.resources--; draw()`, aimed[0]))
	if got := order(); len(got) != 4 || got[1] != aimed[1] {
		t.Errorf("under the pointer the rows %q became %q when the first one went", aimed, got)
	}
	press(t, x)
	if l := x.look(t); l.Subject != aimed[1] {
		t.Errorf("a click at %s opened %s", aimed[1], l.Subject)
	}
	x.await(t, `!byId('details').hidden`)
	if moved := tell[float64](t, x, `(() => {
		const top = () => byId('rows').getBoundingClientRect().top + scrollY, before = top();
		choose('date');
		return top() - before;
	})()`); moved != 0 {
		t.Errorf("when one resource follows the other, the rows move by %v pixels", moved)
	}
	x.run(t, `choose(null)`)

	// A requested change appears immediately, although the pointer is over the rows.
	moveTo(t, x, `document.querySelector('#rows tr:nth-child(2) button')`)
	x.await(t, `!`+sorted)
	x.run(t, `byId('search').dispatchEvent(new Event('input'))`)
	x.await(t, `inSync() && `+sorted)
	moveTo(t, x, `document.querySelector('#head th:first-child button')`)
	press(t, x)
	x.await(t, `inSync() && rowNames().join() === [...rowNames()].sort().join()`)
	moveTo(t, x, `document.querySelector('#head th:nth-child(3) button')`)
	press(t, x)
	moveTo(t, x, `document.querySelector('h1')`)
	for range 4 { // the order changes again, although the clicked element keeps the focus
		x.await(t, fmt.Sprintf(`received.total.newest > %d`, x.look(t).newest()))
		if !tell[bool](t, x, sorted) {
			t.Errorf("after the pointer has left, the rows remain %q", order())
		}
	}
}

// moveTo moves the pointer to the middle of an element. If the element moves during this time, moveTo follows it, as a
// person does.
func moveTo(t *testing.T, x *tab, element string) {
	t.Helper()
	for range 10 {
		at := tell[[]float64](t, x, fmt.Sprintf(`(() => {
			window.aim = %s;
			aim.scrollIntoView({block: 'nearest'});
			const r = aim.getBoundingClientRect();
			return window.pointer = [r.x + r.width / 2, r.y + r.height / 2];
		})()`, element))
		x.do(t, chromedp.MouseEvent(chromedp.MouseMoved, at[0], at[1]))
		if tell[bool](t, x, `document.elementFromPoint(...pointer) === aim`) {
			return
		}
	}
	t.Fatalf("the pointer does not come to %s", element)
}

// press clicks at the position of the pointer.
func press(t *testing.T, x *tab) {
	t.Helper()
	at := tell[[]float64](t, x, `window.pointer`)
	x.do(t, chromedp.MouseClickXY(at[0], at[1]))
}
