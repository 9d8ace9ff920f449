package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/windowstat/windowstat/collector"
)

// liveKeyboard uses the page without a mouse.
func liveKeyboard(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"apple", "banana", "cherry"}, collector.Options{})
	// The order changes each second, except for rows that the keyboard has reached.
	p.calls = func(resource int, second int64) count { return count{pass: 1 + (resource+int(second))%3} }
	t.Cleanup(p.start(t))
	x := openTab(t, browser, serveLive(t, p.stats, nil))
	x.await(t, `document.querySelectorAll('#rows tr').length === 3`)
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			x.do(t, chromedp.KeyEvent(k))
		}
	}
	// to presses Tab until an element with this prefix has the focus.
	to := func(label string) {
		t.Helper()
		for range 40 {
			if press(kb.Tab); strings.HasPrefix(x.look(t).Focus, label) {
				return
			}
		}
		t.Fatalf("Tab does not come to %q", label)
	}
	names := func() (list []string) {
		for _, row := range x.look(t).Rows {
			list = append(list, row.Name)
		}
		return list
	}

	to("Resource")
	press(kb.Enter)
	x.await(t, `[...document.querySelectorAll('#rows button')].map(b => b.textContent).join() === `+
		`'apple,banana,cherry'`)
	press(" ")
	x.await(t, `[...document.querySelectorAll('#rows button')].map(b => b.textContent).join() === `+
		`'cherry,banana,apple'`)
	if sorted := tell[string](t, x, `document.activeElement.parentElement.ariaSort`); sorted != "descending" {
		t.Errorf("the order of the column is %s, want descending", sorted)
	}
	to("Pass")
	press(kb.Enter)

	to("banana")
	order, before := names(), x.look(t)
	x.await(t, fmt.Sprintf(`received.total.newest >= %d`, before.newest()+4))
	if l := x.look(t); l.Focus != "banana" || !slices.Equal(names(), order) {
		t.Errorf("the rows %v have become %v, and the focus is on %q", order, names(), l.Focus)
	}
	press(kb.Enter)
	x.await(t, `!byId('details').hidden`)
	if l := x.look(t); l.Subject != "banana" || l.Focus != "Back to the total" {
		t.Errorf("Enter opens %q, and the focus is on %q", l.Subject, l.Focus)
	}
	press(kb.Enter)
	if l := x.look(t); l.Subject != before.Subject || l.Focus != "banana" {
		t.Errorf("Enter goes back to %q, and the focus is on %q", l.Subject, l.Focus)
	}
	if tell[bool](t, x, `byId('details').checkVisibility()`) {
		t.Error("the details of the resource remain on the page")
	}
	press(kb.Enter, kb.Escape)
	if l := x.look(t); l.Subject != before.Subject || l.Focus != "banana" {
		t.Errorf("Escape goes back to %q, and the focus is on %q", l.Subject, l.Focus)
	}

	to("Pause")
	press(" ")
	paused := x.look(t)
	x.await(t, `received.total.newest > lastShown() + 2`)
	to("") // the search field without text
	press("c", "h")
	x.await(t, `document.querySelectorAll('#rows tr').length === 1`)
	l := x.look(t)
	if l.State != "paused" || l.newest() != paused.newest() || l.Rows[0] != paused.row("cherry") {
		t.Errorf("a paused page changes: %q, second %d after %d, %v after %v", l.State, l.newest(), paused.newest(),
			l.Rows[0], paused.row("cherry"))
	}
	press("x")
	x.await(t, `!byId('none').hidden && byId('none').textContent === 'No resource has such a name.'`)
	press(kb.Backspace, kb.Backspace, kb.Backspace)
	to("Go on")
	press(kb.Enter)
	x.await(t, `byId('state').textContent === 'live' && document.querySelectorAll('#rows tr').length === 3`)
	if l := x.look(t); l.newest() < paused.newest()+2 {
		t.Errorf("the page has not continued: second %d after %d", l.newest(), paused.newest())
	}
	x.look(t).checkTimes(t, 5)
}

// row returns the table row of a resource.
func (l look) row(name string) tableRow {
	i := slices.IndexFunc(l.Rows, func(r tableRow) bool { return r.Name == name })
	if i < 0 {
		return tableRow{}
	}
	return l.Rows[i]
}
