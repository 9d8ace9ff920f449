package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// liveRecorded opens a recorded page from a file. The page must have all of its numbers, with any names, and must send
// no requests. It can be sorted, searched and zoomed like the live page.
func liveRecorded(t *testing.T, browser context.Context) {
	names := append([]string{"</script><script>window.ran=1</script>", "a\u2028b\u2029c"}, hostile...)
	const first, seconds = 1767323045, 900
	// Resource number i has i passes in each second, and twice as many in the seconds from 100 to 109.
	recorded := func(name string, i int64) live.Recorded {
		x := live.Recorded{
			Name:   collector.CleanName(name),
			Limits: []collector.Limit{{Count: i}, {Grade: collector.Concurrency, Count: 7}},
		}
		for s := range seconds {
			n := i
			if s >= 100 && s < 110 {
				n *= 2
			}
			x.Pass, x.Complete, x.Block = append(x.Pass, n), append(x.Complete, n), append(x.Block, i%2)
			x.Exception, x.RT, x.InFlightMax = append(x.Exception, 0), append(x.RT, 1000*i), append(x.InFlightMax, i+3)
		}
		return x
	}
	r := live.Recording{
		Title: "</title><script>window.ran=1</script>",
		Above: template.HTML("<section class=\"found\"><h2>above</h2></section>"),
		First: first, Offset: 90 * time.Minute,
		Seconds: seconds, Total: recorded("total", 100),
	}
	for i, name := range names {
		r.Resources = append(r.Resources, recorded(name, int64(i+1)))
	}
	path := filepath.Join(t.TempDir(), "incident.html")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHTML(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	x := openTab(t, browser, "file://"+path)
	x.await(t, `recording.span !== null && document.querySelectorAll('#rows tr').length > 0`)
	if n := tell[int](t, x, `performance.getEntriesByType('resource').length`); n != 0 {
		t.Errorf("it loads %d things", n)
	}
	sum := func(expression string, want int64) {
		t.Helper()
		if got := tell[int64](t, x, expression); got != want {
			t.Errorf("%s is %d, want %d", expression, got, want)
		}
	}
	const passed = `charts.calls.plot.data[1].reduce((a, b) => a + b, 0)`
	sum(`charts.calls.plot.data[0].length`, seconds)
	sum(passed, 100*(seconds+10))
	sum(`document.querySelectorAll('#rows tr').length`, int64(len(names)))
	if got := tell[string](t, x,
		`byId('second').textContent + '|' + byId('state').textContent`); got != "2026-01-02, 900 seconds, 04:34:05 "+
		"to 04:49:04|recorded: nothing here changes" {
		t.Errorf("the page shows %q", got)
	}
	for i, name := range names {
		name = collector.CleanName(name)
		x.run(t, fmt.Sprintf(`[...document.querySelectorAll('#rows tr')].find(tr => tr.entry.name === `+
			`%s).querySelector('button').click()`, jsonOf(t, name)))
		x.await(t, fmt.Sprintf(`byId('subject').textContent === visible(%s)`, jsonOf(t, name)))
		sum(passed, int64(i+1)*(seconds+10))
		sum(`charts.calls.limit`, int64(i+1))
		sum(`charts.flight.limit`, 7)
	}
	x.run(t, `zoom(1767323045 + 95, 1767323045 + 115)`)
	sum(passed, int64(len(names))*(20+10))
	row := `Number(document.querySelector('#rows tr td.%s').textContent.replace(/,/g, ''))`
	for column, want := range map[string]int64{
		"pass": int64(len(names)) * (20 + 10), "peak": int64(len(names)) * 2,
		"in_flight_max": int64(len(names)) + 3,
	} {
		x.run(t, fmt.Sprintf(`if (view.sort !== %q) document.querySelector('#head .%s button').click()`, column,
			column))
		sum(fmt.Sprintf(row, column), want)
	}
	x.keep(t, "recorded")
	x.run(t, `choose(null); byId('unzoom').click()`)
	sum(passed, 100*(seconds+10))
	x.run(t, `byId('search').value = 'A\u2028B'; byId('search').dispatchEvent(new Event('input'))`)
	sum(`document.querySelectorAll('#rows tr').length`, 1)
	x.run(t, `byId('search').value = ''; byId('search').dispatchEvent(new Event('input'))`)
	x.resize(t, 390, 844, true)
	x.keep(t, "recorded-phone")
	if strange := tell[int](t, x, `document.querySelectorAll('img, h1:not(header h1), b, iframe, [onerror], `+
		`[onmouseover], a').length + ('ran' in window ? 1000 : 0)`); strange != 0 {
		t.Errorf("the page has %d elements that should be text", strange)
	}
}

// jsonOf returns s as a string literal for a script.
func jsonOf(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
