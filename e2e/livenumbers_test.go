package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// liveSeconds is the duration of the load of the service in [liveNumbers].
const liveSeconds = 65

// liveNumbers follows a service under load for a minute. Each second must be shown once, in the table and in the
// charts, with the numbers of the metric log. A burst of one second must have its full height.
func liveNumbers(t *testing.T, browser context.Context) {
	l := listen(t, "127.0.0.1:0")
	s, endLog := startService(t, l)
	loaded := make(chan error, 1)
	go func() { loaded <- s.load(t.Context(), liveSeconds) }()
	x := openTab(t, browser, "http://"+l.Addr().String()+livePath)
	var looks []look
	for busy := true; busy; time.Sleep(250 * time.Millisecond) {
		if now := x.look(t); len(looks) == 0 || now.newest() > looks[len(looks)-1].newest() {
			looks = append(looks, now)
		}
		select {
		case err := <-loaded:
			if err != nil {
				t.Fatal(err)
			}
			busy = false
		default:
		}
	}
	if err := endLog(); err != nil {
		t.Fatal(err)
	}
	end := s.open()
	truths, err := s.truths()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("looked at %d seconds", len(looks))
	if len(looks) < liveSeconds/3 {
		t.Error("those are too few")
	}
	for _, l := range looks {
		if checkTable(t, l, truths); t.Failed() {
			break // the others have the same error
		}
	}
	x.await(t, fmt.Sprint("received.total.newest >= ", end-1))
	x.await(t, `byId('state').textContent === 'live'`)
	all := x.look(t)
	all.checkTimes(t, liveSeconds)
	checkChart(t, all, end, func(second int64) (sum metriclog.Row) {
		for _, u := range truths {
			r := u.rows[second]
			sum.Pass, sum.Block, sum.Exception = sum.Pass+r.Pass, sum.Block+r.Block, sum.Exception+r.Exception
		}
		return sum
	})
	for resource, u := range truths {
		moveTo(t, x,
			fmt.Sprintf(`[...document.querySelectorAll('#rows button')].find(b => b.textContent === %q)`, resource))
		press(t, x)
		x.await(t, `received.resource.newest >= received.total.newest`)
		l := x.look(t)
		if l.Subject != resource {
			t.Errorf("the page shows %q instead of %s", l.Subject, resource)
		}
		checkChart(t, l, end, func(second int64) metriclog.Row { return u.rows[second] })
		if resource == "burst" {
			checkHeight(t, x, u)
			x.keep(t, "burst")
		}
	}
}

// checkTable compares the table with the truth of its second.
func checkTable(t *testing.T, l look, truths map[string]truth) {
	t.Helper()
	at, shown := l.newest(), map[string]bool{}
	for _, row := range l.Rows {
		u, ok := truths[row.Name]
		if !ok || shown[row.Name] {
			t.Errorf("second %d has a row of %q, or two", at, row.Name)
			continue
		}
		shown[row.Name] = true
		r, peak := u.rows[at], int64(0)
		for second, r := range u.rows {
			if second <= at && second > at-60 {
				peak = max(peak, r.Pass)
			}
		}
		got := []string{row.Pass, row.Block, row.Exception, row.Peak}
		want := []string{thousands(r.Pass), thousands(r.Block), thousands(r.Exception), thousands(peak)}
		if !slices.Equal(got, want) {
			t.Errorf("second %d of %s: pass, blocked, exceptions and peak are %v; they should be %v", at, row.Name, got,
				want)
		}
	}
	for resource, u := range truths {
		for second := range u.rows {
			if second <= at && !shown[resource] {
				t.Errorf("second %d has no row of %s, which was called in second %d", at, resource, second)
				break
			}
		}
	}
}

// thousands formats a number as the page does.
func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// checkChart compares the chart of calls with the truth of each second before end.
func checkChart(t *testing.T, l look, end int64, of func(second int64) metriclog.Row) {
	t.Helper()
	var wrong []string
	for i, at := range l.Times {
		r := of(at)
		if at >= end {
			continue
		}
		line := fmt.Sprint(text(l.Pass[i]), text(l.Block[i]), text(l.Exception[i]))
		want := fmt.Sprint(text(&r.Pass), text(&r.Block), text(&r.Exception))
		if line != want {
			wrong = append(wrong, fmt.Sprintf("second %d: %s; it should be %s", at, line, want))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("the chart of %s is wrong in %d seconds:\n%s", l.Subject, len(wrong),
			strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}

func text(n *int64) string {
	if n == nil {
		return "? "
	}
	return fmt.Sprint(*n, " ")
}

// checkHeight checks the pixels of the chart: the column of the busiest second must reach its height, and the column of
// an idle second must not.
func checkHeight(t *testing.T, x *tab, u truth) {
	t.Helper()
	var burst, quiet int64
	for second, r := range u.rows {
		if r.Pass == u.peak() {
			burst = second
		}
	}
	quiet = burst - 3
	type pixels struct{ Burst, Above, Quiet []int }
	ink := tell[pixels](t, x, fmt.Sprintf(`(() => {
		const u = charts.calls.plot, all = u.ctx.getImageData(0, 0, u.ctx.canvas.width, u.ctx.canvas.height);
		const at = (second, v) => {
			const x = Math.floor(u.valToPos(second + .5, 'x', true)), y = Math.floor(u.valToPos(v, 'y', true));
			const i = 4 * (y * all.width + x);
			return [...all.data.slice(i, i + 4)];
		};
		return {Burst: at(%[1]d, %[3]d * .96), Above: at(%[1]d, %[3]d * 1.04), Quiet: at(%[2]d, %[3]d * .96)};
	})()`, burst, quiet, u.peak()))
	t.Logf("the burst has %d calls; ink %v", u.peak(), ink)
	if slices.Equal(ink.Burst, ink.Quiet) || slices.Equal(ink.Burst, ink.Above) {
		t.Errorf("the burst of %d calls is not drawn as high as it was: %v", u.peak(), ink)
	}
}
