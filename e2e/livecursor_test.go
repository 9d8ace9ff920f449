package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/windowstat/windowstat/collector"
)

// liveCursor points at a second by mouse and by keyboard. All charts and the figures show this second. An open resource
// has its limit as a line, and its callers below.
func liveCursor(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now().Add(-100*time.Second), []string{"apple"}, collector.Options{})
	p.calls = func(_ int, second int64) count { return count{pass: 1 + int(second%7)} }
	for range 100 {
		p.tick()
	}
	t.Cleanup(p.start(t))
	if err := p.stats.SetLimits([]collector.Limit{
		{Resource: "apple", Grade: collector.QPS, Count: 9},
		{Resource: "apple", Grade: collector.Concurrency, Count: 1000},
	}); err != nil {
		t.Fatal(err)
	}
	x := openTab(t, browser, serveLive(t, p.stats, nil)+"#resource=apple")
	x.await(t, `received.resource.seconds.size >= 100 && !byId('details').hidden`)
	shows := func(at int64) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Log(tell[string](t, x,
					`byId('when').textContent + ' ' + cursorAt + ' ' + `+
						`JSON.stringify(Object.entries(charts).map(([k, c]) => `+
						`[k, c.plot.cursor.left, c.plot.cursor.idxs, c.data[0]]))`))
			}
		}()
		x.await(t, fmt.Sprintf(
			`byId('when').textContent === 'Under the cursor: ' + formatTime(%[1]d)
			&& byId('now').querySelector('dd').textContent === '%[2]d'
			&& Object.values(charts).every(c => c.data[0].length < 2 || !c.data[0].includes(%[1]d)
				|| c.data[0][c.plot.cursor.idxs[1]] === %[1]d)`, at, 1+at%7))
	}
	x.run(t, `byId('pause').click()`)
	last := tell[int64](t, x, `lastShown()`)
	for _, from := range []string{"calls", "times", "flight", "cpu"} {
		for _, at := range []int64{last - 150, last - 30, last - 3} {
			moveTo(t, x, fmt.Sprintf(`document.querySelector('#%s .u-over')`, from))
			place := func() []float64 {
				return tell[[]float64](t, x,
					fmt.Sprintf(`(() => { const u = charts.%s.plot, r = u.over.getBoundingClientRect(); return `+
						`[r.x + u.valToPos(%d + .7, 'x'), r.y + r.height / 2]; })()`, from, at))
			}
			for before := place(); ; { // until the page no longer scrolls
				x.do(t, chromedp.MouseEvent(chromedp.MouseMoved, before[0], before[1]))
				now := place()
				if slices.Equal(now, before) {
					break
				}
				before = now
			}
			if at > last-100 && from != "cpu" { // the charts of cpu have no earlier seconds
				shows(at)
			}
		}
	}
	moveTo(t, x, `document.querySelector('h1')`)
	x.await(t, fmt.Sprintf(`byId('when').textContent === 'The second ' + formatTime(%d)`, last))
	for i, key := range []string{",", ",", ",", "."} {
		x.do(t, chromedp.KeyEvent(key))
		shows(last - []int64{0, 1, 2, 1}[i])
	}
	x.do(t, chromedp.KeyEvent(kb.Escape)) // back to the total
	x.run(t, `choose('apple')`)
	x.await(t, `received.resource.seconds.size >= 100`)
	// Seconds that the stream sent while the page was busy must not count as the beginning.
	x.run(t, `for (const end = performance.now() + 2500; performance.now() < end;); choose(null); choose('apple')`)
	x.await(t, `received.resource.seconds.size >= 100`)

	// Limits: the first fits into the chart, and the second is too high.
	x.await(t, `byId('qps').textContent === '; the limit is 9' && `+
		`byId('concurrency').textContent === '; the limit is 1,000'`)
	if got := tell[[]float64](t, x, `[charts.calls.plot.scales.y.max, charts.flight.plot.scales.y.max]`); got[0] < 9 ||
		got[1] >= 1000 {
		t.Errorf("the charts of calls and in flight reach to %v", got)
	}
	// The callers are updated.
	x.run(t, `byId('pause').click()`)
	p.stats.Block(t.Context(), "apple", "because of <b>", collector.Origin("somebody"))
	if err := p.stats.SetLimits([]collector.Limit{{Resource: "apple", Grade: collector.QPS, Count: 5}}); err != nil {
		t.Fatal(err)
	}
	x.await(t, `byId('details').textContent.includes('somebody') && `+
		`byId('details').textContent.includes('because of <b>') && byId('qps').textContent === '; the limit is 5'`)
}

// Resources that fail, are refused or are slow come first, with a description in words. The common scale makes the
// small charts comparable.
func liveTrouble(t *testing.T, browser context.Context) {
	names := []string{"busy", "calm", "refused", "slow", "failing"}
	now := time.Now()
	p := newPaced(t, now.Add(-300*time.Second), names, collector.Options{})
	begin := p.second
	p.calls = func(resource int, second int64) count {
		c := count{pass: []int{20, 1, 2, 3, 4}[resource]}
		if names[resource] == "refused" && second >= begin+290 {
			c.block = 5
		}
		return c
	}
	p.takes = func(second int64, call int) time.Duration { return 2 * time.Millisecond }
	for p.second < begin+300 {
		if p.second >= begin+290 {
			for range 4 {
				p.stats.Do(t.Context(), "failing",
					func(context.Context) error { return errors.New("no") }) //nolint:errcheck // expected
			}
			e := p.stats.Resource("slow").Enter()
			p.clock.set(p.clock.now().Add(100 * time.Millisecond))
			e.Exit(nil)
		}
		p.tick()
	}
	// The test itself uses willReadFrequently.
	x := openTab(t, browser, serveLive(t, p.stats, nil), "willReadFrequently")
	x.await(t, `document.querySelectorAll('#rows tr').length === 5`)
	var got []string
	for _, r := range x.look(t).Rows {
		got = append(got, r.Name+": "+r.Trouble)
	}
	want := "failing: 40 of 80 failed|refused: 50 of 70 refused|slow: slow: average × 13.2|busy: |calm: "
	if table := strings.Join(got, "|"); table != want {
		t.Errorf("the table has %s, want %s", table, want)
	}
	share := func(name, column string) float64 {
		return tell[float64](t, x,
			fmt.Sprintf(`parseFloat([...document.querySelectorAll('#rows tr')].find(tr => tr.entry.name === `+
				`%q).querySelector('.%s').style.getPropertyValue('--share'))`, name, column))
	}
	if a, b, c := share("failing", "exception"), share("refused", "block"), share("calm", "exception"); a <= b/2 ||
		b < 10 || a > 40 || c != 0 {
		t.Errorf("cells are coloured by %v, %v and %v %%", a, b, c)
	}
	ink := func(name string) int {
		return tell[int](t, x, fmt.Sprintf(`(() => {
			const rows = [...document.querySelectorAll('#rows tr')];
			const c = rows.find(tr => tr.entry.name === %q).querySelector('canvas');
			return c.getContext('2d').getImageData(0, 0, c.width, c.height).data
				.filter((v, i) => i %% 4 === 3 && v > 99).length; })()`, name))
	}
	alone := ink("calm")
	x.run(t, `byId('common').click()`)
	if one := ink("calm"); one*4 > alone || ink("busy") < alone*3/4 ||
		!tell[bool](t, x, `location.hash.includes('scale=common')`) {
		t.Errorf("on one scale the small chart has %d pixels, and %d of its own; that of the busiest has %d", one,
			alone, ink("busy"))
	}
	// At the width of a phone the table comes first, with the most important columns.
	x.resize(t, 400, 800, true)
	if shown := tell[string](t, x, `[...document.querySelectorAll('#head th')].filter(th => th.offsetWidth > `+
		`0).map(th => th.className).join() + (byId('rows').getBoundingClientRect().top < `+
		`byId('now').getBoundingClientRect().top)`); shown != "name,trouble,pass,in_flight_avgtrue" {
		t.Errorf("a phone shows %s", shown)
	}
}
