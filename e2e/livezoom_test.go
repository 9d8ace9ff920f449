package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/windowstat/windowstat/collector"
)

// liveZoom zooms into the charts by mouse, by keyboard and by the address, and zooms out again. Another browser that
// opens the address must show the same seconds with the same numbers. The page continues to receive seconds.
func liveZoom(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now().Add(-170*time.Second), []string{"apple", "banana"}, collector.Options{})
	p.calls = func(resource int, second int64) count { return count{pass: 1 + int(second%50), block: resource} }
	p.takes = func(int64, int) time.Duration { return 10 * time.Microsecond }
	for range 170 {
		p.tick()
	}
	t.Cleanup(p.start(t))
	url := serveLive(t, p.stats, nil)
	x := openTab(t, browser, url+"#resource=banana")
	x.await(t, `received.resource.seconds.size >= 170`)
	// The p99 is unknown for seconds before the first viewer, and the page shows this.
	x.await(t, `byId('timed').textContent.startsWith('; p99 from ')`)
	x.run(t, `window.seen = () => charts.calls.plot.data[0]`)

	// drag drags over the chart from one second to another.
	drag := func(from, to int64) {
		t.Helper()
		moveTo(t, x, `document.querySelector('#calls .u-over')`)
		at := tell[[]float64](t, x, fmt.Sprintf(`(() => {
			const u = charts.calls.plot, r = u.over.getBoundingClientRect();
			return [r.x + u.valToPos(%d + .3, 'x'), r.x + u.valToPos(%d - .3, 'x'), r.y + r.height / 2];
		})()`, from, to))
		x.do(t, chromedp.MouseEvent(chromedp.MousePressed, at[0], at[2], chromedp.ButtonLeft, chromedp.ClickCount(1)))
		for i := range 5 {
			x.do(t, chromedp.MouseEvent(chromedp.MouseMoved, at[0]+(at[1]-at[0])*float64(i+1)/5,
				at[2], chromedp.ButtonLeft))
		}
		x.do(t, chromedp.MouseEvent(chromedp.MouseReleased, at[1], at[2], chromedp.ButtonLeft))
	}
	now := tell[int64](t, x, `lastShown()`)
	from, to := now-100, now-60
	// The chart moves with each second, so the selected range is later by the duration of the drag.
	began := time.Now()
	drag(from, to)
	took := int64(time.Since(began) / time.Second)
	x.await(t, `view.zoom !== null`)
	got := tell[[]int64](t, x, `view.zoom`)
	if d := got[0] - from; d < -1 || d > 3+took || got[1]-got[0] < to-from-3 || got[1]-got[0] > to-from+2+took {
		t.Errorf("dragged over %d to %d, the chart shows %d", from, to, got)
	}
	shows := func(x *tab, first, end int64) {
		t.Helper()
		x.await(t, fmt.Sprintf(`(() => { const x = charts.calls.plot.data[0]; return x[0] === %d && x[x.length - 1] `+
			`=== %d; })()`, first, end-1))
		scale := tell[[]float64](t, x, `[charts.times.plot.scales.x.min, charts.times.plot.scales.x.max]`)
		if scale[0] != float64(first) || scale[1] != float64(end) {
			t.Errorf("the other chart shows %v", scale)
		}
		for i, n := range x.look(t).Pass {
			if second := first + int64(i); n == nil || *n != 1+second%50 {
				t.Errorf("second %d has %s calls, want %d", second, text(n), 1+second%50)
			}
		}
	}
	shows(x, got[0], got[1])
	x.await(t, fmt.Sprintf(`lastShown() > %d`, now+3)) // new seconds arrive, and the charts do not move
	shows(x, got[0], got[1])
	// The figures and the table show the values of the range.
	sum, busiest := int64(0), int64(0)
	for second := got[0]; second < got[1]; second++ {
		sum, busiest = sum+1+second%50, max(busiest, 1+second%50)
	}
	// Leave the chart; over the chart the figures show the second under the cursor.
	moveTo(t, x, `document.querySelector('h1')`)
	x.await(t, fmt.Sprintf(`inSync() && received.table.end === %d`, got[1]))
	facts := tell[[]string](t, x, `[...byId('now').querySelectorAll('dd')].map(dd => dd.textContent)`)
	if facts[0] != thousands(sum) || !strings.HasPrefix(facts[6], fmt.Sprint(busiest, " at ")) ||
		!strings.HasPrefix(tell[string](t, x, `byId('when').textContent`),
			fmt.Sprintf("Zoomed to %d seconds, ", got[1]-got[0])) {
		t.Errorf("the range has %d calls, at most %d in a second; the page shows %q", sum, busiest, facts)
	}
	if row := x.look(t).row("banana"); row.Pass != thousands(sum) || row.Peak != fmt.Sprint(busiest) ||
		row.Block != fmt.Sprint(got[1]-got[0]) || row.Trouble != "" {
		t.Errorf("the table has %+v; %d passed, at most %d in a second", row, sum, busiest)
	}
	x.keep(t, "zoomed")
	other := openTab(t, startBrowser(t), tell[string](t, x, `location.href`))
	other.await(t, `typeof received !== 'undefined' && received.resource.seconds.size >= 170`)
	if subject := other.look(t).Subject; subject != "banana" {
		t.Errorf("the other browser shows %q", subject)
	}
	shows(other, got[0], got[1])

	// The keyboard zooms in, moves sideways, and zooms out.
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			x.do(t, chromedp.KeyEvent(k))
		}
	}
	length := got[1] - got[0]
	press("+")
	in := tell[[]int64](t, x, `view.zoom`)
	if n := in[1] - in[0]; n < length/2-1 || n > length/2+1 {
		t.Errorf("+ shows %d of %d seconds", n, length)
	}
	press(kb.ArrowLeft)
	if left := tell[[]int64](t, x, `view.zoom`); left[0] >= in[0] || left[1]-left[0] != in[1]-in[0] {
		t.Errorf("to the left of %d are %d", in, left)
	}
	press(kb.ArrowRight, "-", "-", "-", "-")
	if !tell[bool](t, x, `view.zoom === null && byId('unzoom').hidden && !location.hash.includes('zoom')`) {
		t.Error("- does not zoom out in the end")
	}
	// The button and a double click zoom out.
	for _, out := range []func(){
		func() { x.run(t, `byId('unzoom').click()`) },
		func() {
			moveTo(t, x, `document.querySelector('#calls .u-over')`)
			at := tell[[]float64](t, x, `window.pointer`)
			x.do(t, chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
		},
	} {
		x.run(t, `zoom(lastShown() - 40, lastShown() - 20)`)
		if out(); !tell[bool](t, x, `view.zoom === null`) {
			t.Error("the chart stays zoomed")
		}
	}
	// Touch does not zoom, and the page ignores an address with an invalid range.
	call(t, x, input.DispatchTouchEvent, input.DispatchTouchEventParams{
		Type:        input.DispatchTouchEventTypeTouchStart,
		TouchPoints: []*input.TouchPoint{{X: 300, Y: 300}},
	})
	call(t, x, input.DispatchTouchEvent,
		input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
	for _, wrong := range []string{"#zoom=5-1", "#zoom=1-9999999999", "#zoom=x", "#zoom=1-2-3"} {
		x.run(t, fmt.Sprintf(`location.hash = %q`, wrong))
		x.await(t, `inSync() && view.zoom === null`)
	}
}
