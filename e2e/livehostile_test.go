package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/windowstat/windowstat/collector"
)

// hostile are names that would run code, or break the page, if it did not treat them as text.
var hostile = []string{
	`<img src=x onerror="window.ran=1">`,
	`"><script>window.ran=1</script>`,
	`' onmouseover='window.ran=1' x='`,
	`javascript:window.ran=1`,
	`{{constructor.constructor('window.ran=1')()}} ${window.ran=1}`,
	`</td></tr></table><h1>elsewhere</h1>`,
	`&lt;b&gt; &amp; &#x3c;`,
	"right \u202e to left \u202d and \u2067 isolated",
	"two\nlines\tand\x00nothing",
	`__proto__`, `constructor`, `../../etc/passwd?name=x&name=y#z%00`,
	strings.Repeat("W", 10_000),
	strings.Repeat("ﷺ", 3_000), // wider than any other letter
	strings.Repeat("Z\u0300\u0301\u0302\u0303", 1000),
}

// visible returns a name as the page shows it: with the characters escaped that cannot be printed.
func visible(name string) string {
	if strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case !unprintable(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// liveHostile makes clients choose the names of resources, origins and reasons. The page must show all of them as text,
// and run no code in them.
func liveHostile(t *testing.T, browser context.Context) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, name := range hostile {
		names = append(names, collector.CleanName(name))
		origin, above := hostile[(i+1)%len(hostile)], hostile[(i+2)%len(hostile)]
		ctx, outer, err := c.Enter(t.Context(), above, collector.Origin(origin), collector.Entrance(name))
		_, inner, err2 := c.Enter(ctx, name)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		inner.Exit(nil)
		outer.Exit(nil)
		c.Block(ctx, name, origin)
	}
	x := openTab(t, browser, serveLive(t, c, nil))
	x.await(t, fmt.Sprint("document.querySelectorAll('#rows tr').length === ", len(names)))

	l := x.look(t)
	var shown, escaped []string
	for _, name := range names {
		escaped = append(escaped, visible(name))
	}
	slices.Sort(escaped)
	for _, row := range l.Rows {
		shown = append(shown, row.Name)
	}
	if slices.Sort(shown); !slices.Equal(shown, escaped) {
		t.Errorf("the page shows the resources %q, want %q", shown, escaped)
	}
	for i, name := range names {
		name, origin := visible(name), visible(collector.CleanName(hostile[(i+1)%len(hostile)]))
		x.run(t, fmt.Sprintf(`[...document.querySelectorAll('#rows button')].find(b => b.textContent === %q).click()`,
			name))
		x.await(t, `!byId('details').hidden`)
		details := tell[[]string](t, x,
			`[...document.querySelectorAll('#details td:first-child')].map(td => td.textContent)`)
		if l := x.look(t); l.Subject != name || !slices.Contains(details, origin) {
			t.Errorf("the page shows %q with details %q; it should show %q with %q", l.Subject, details, name, origin)
		}
		if i%6 == 0 {
			x.keep(t, fmt.Sprint("hostile-", i))
		}
	}
	x.run(t, fmt.Sprintf(`byId('search').value = %q; byId('search').dispatchEvent(new Event('input'))`, hostile[0]))
	x.await(t, `inSync() && received.table.matches === 1`)
	if l := x.look(t); len(l.Rows) != 1 || l.Rows[0].Name != hostile[0] {
		t.Errorf("a search for %s finds %v", hostile[0], l.Rows)
	}
	x.run(t, `byId('search').value = ''; byId('search').dispatchEvent(new Event('input'))`)
	x.resize(t, 390, 844, true)
	x.run(t, `choose(null)`)
	x.keep(t, "hostile-phone")
	time.Sleep(time.Second) // wait for code that would run later

	strange := tell[int](t, x, `document.querySelectorAll('img, h1:not(header h1), b, iframe, script:not([src]), `+
		`[onerror], [onmouseover], a').length + ('ran' in window ? 1000 : 0)`)
	if strange != 0 {
		t.Errorf("%d things are on the page that should not be", strange)
	}
}
