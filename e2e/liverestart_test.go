package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// liveRestart kills the service, and later has it end well, while somebody looks: the page says that it is away, goes on
// by itself when it is back, says so, and shows no second twice.
func liveRestart(t *testing.T, browser context.Context) {
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	c.start(t)
	t.Cleanup(func() { c.kill() })
	x := openTab(t, browser, "http://"+c.addr+livePath)
	x.await(t, `known.seconds.length >= 8`)
	for _, stop := range []func(){c.kill, func() { c.end(t) }} {
		before := x.look(t).newest()
		seconds := tell[int](t, x, `known.seconds.filter(s => s.rows).length`)
		stop()
		x.await(t, `byId('state').textContent.includes('trying again')`)
		time.Sleep(5 * time.Second)
		c.start(t)
		x.await(t, `byId('state').textContent.startsWith('live') && !byId('state').classList.contains('bad')`)
		x.await(t, fmt.Sprint(`known.seconds.filter(s => s.rows).length >= `, seconds+8))
		l := x.look(t)
		if !strings.Contains(l.State, "the server was started again after") {
			t.Errorf("the page does not say that the server was away; it says %q", l.State)
		}
		if !slices.Contains(l.Times, before) {
			t.Errorf("the page has forgotten second %d, which it had before the server was away", before)
		}
	}
	x.await(t, `byId('state').textContent.startsWith('live; ')`) // by the stream
	x.keep(t, "restart")
	end := time.Now().Unix() - 1
	l := x.look(t)
	l.checkTimes(t, 20)
	checkLoggedPasses(t, l, c.rows(t, end, 15), end)
	// What the browser itself says of a server that is away.
	x.checkComplaints(t, "net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR_EMPTY_RESPONSE", "net::ERR_CONNECTION_RESET")
}

// checkLoggedPasses compares the passes of all calls with the log of processes that were killed. Of each, the page may lack
// the last second that is in the log, and the log may lack the last that is on the page.
func checkLoggedPasses(t *testing.T, l look, rows []metriclog.Row, end int64) {
	t.Helper()
	logged := map[int64]int64{}
	for _, r := range rows {
		logged[r.Start.Unix()] += r.Pass
	}
	var compared, away, onlyPage, onlyLog int
	for i, at := range l.Times {
		n, ok := logged[at]
		switch got := l.Pass[i]; {
		case at >= end:
		case got == nil && !ok:
			away++
		case got == nil:
			onlyLog++
		case !ok:
			onlyPage++
		case *got != n:
			t.Errorf("the page has %d passes in second %d; the log has %d", *got, at, n)
		default:
			compared++
		}
	}
	t.Logf("%d seconds are the same; in %d there was no server; %d are only on the page, %d only in the log", compared, away, onlyPage, onlyLog)
	if compared < 15 || away < 6 || onlyPage > 2 || onlyLog > 2 {
		t.Error("that is not as it should be")
	}
}
