package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// liveRestart kills the service while the page is open, and later shuts the service down. The page must report that the
// server is away, continue by itself when the server is back, report this, and show no second twice.
func liveRestart(t *testing.T, browser context.Context) {
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	c.start(t)
	t.Cleanup(func() { c.kill() })
	x := openTab(t, browser, "http://"+c.addr+livePath,
		// Messages of the browser itself about an unreachable server.
		"net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR_EMPTY_RESPONSE",
		"net::ERR_CONNECTION_RESET")
	x.await(t, `received.total.seconds.size >= 8`)
	// A suspended server is not live. The clock shows the delay, and screen readers announce it once.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := c.process.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		x.await(t, fmt.Sprintf(`/^\d+ s behind$/.test(byId('behind').textContent) === %[1]v && `+
			`byId('state').classList.contains('bad') === %[1]v`, signal == syscall.SIGSTOP))
		if state := x.look(t).State; strings.Contains(state, "behind") {
			t.Errorf("readers of screens hear each second: %q", state)
		}
	}
	for _, stop := range []func(){c.kill, func() { c.end(t) }} {
		before := x.look(t).newest()
		seconds := tell[int](t, x, `received.total.seconds.size`)
		stop()
		x.await(t, `byId('state').textContent.includes('trying again')`)
		time.Sleep(5 * time.Second)
		c.start(t)
		x.await(t, `byId('state').textContent.startsWith('live') && !byId('state').classList.contains('bad')`)
		x.await(t, fmt.Sprint(`received.total.seconds.size >= `, seconds+8))
		l := x.look(t)
		if !strings.Contains(l.State, "the server was started again after") {
			t.Errorf("the page does not report the restart of the server; its state is %q", l.State)
		}
		if !slices.Contains(l.Times, before) {
			t.Errorf("the page lost second %d, which it had before the server stopped", before)
		}
	}
	x.await(t, `byId('state').textContent.startsWith('live; ')`) // connected by the stream
	x.keep(t, "restart")
	l := x.look(t)
	l.checkTimes(t, 20)
	c.end(t) // writes its last second to the log
	checkLoggedPasses(t, l, c.rows(t, l.newest()+1, 15))
}

// checkLoggedPasses compares the passes of all calls with the log. The log of a killed process lacks its last seconds.
// The server was stopped twice. The page must lack only the seconds that it had not received before these stops.
func checkLoggedPasses(t *testing.T, l look, rows []metriclog.Row) {
	t.Helper()
	logged := map[int64]int64{}
	for _, r := range rows {
		logged[r.Start.Unix()] += r.Pass
	}
	same, away := 0, 0
	for i, at := range l.Times {
		n, ok := logged[at]
		switch {
		case l.Pass[i] == nil:
			if l.Pass[i-1] != nil {
				away++
			}
		case !ok && *l.Pass[i] > 0:
			t.Logf("second %d is not in the log", at)
		case *l.Pass[i] != n:
			t.Errorf("the page has %d passes in second %d; the log has %d", *l.Pass[i], at, n)
		default:
			same++
		}
	}
	t.Logf("%d seconds are the same", same)
	if same < 15 || away != 2 {
		t.Errorf("%d seconds are equal, and the server was away %d times", same, away)
	}
}

// liveColumns restarts a server with other columns, in another order. Earlier seconds must keep their numbers, and new
// seconds must be read by the names of the columns. A column that is not sent must show nothing.
func liveColumns(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"apple"}, collector.Options{})
	p.calls = func(int, int64) count { return count{pass: 5, block: 2} }
	stop := p.start(t)
	x := openTab(t, browser, serveLive(t, p.stats, nil))
	x.await(t, `received.total.seconds.size >= 3 && received.table.rows.length === 1`)
	stop()
	before := tell[int64](t, x, `(() => {
		disconnect();
		clearTimeout(reconnectTimer);
		connection.lastEvent = Infinity; // otherwise the page would poll
		const before = received.total.newest;
		applyMessage({process: received.process + 1, inbound: false, fresh: true,
			columns: ['shed', 'rt_avg', 'block', 'pass'], after: '', now: (before + 2) * 1000,
			machine: [], machine_columns: [], total: [[before + 1, 90, 1500, 30, 11]], resource: null, at: before + 1,
			table: {first: before + 1, end: before + 2, resources: 1, matches: 1,
				rows: [{n: 2, v: [91, -1, 31, 12], name: 'apple', past: [7, 12]}]}});
		draw();
		return before;
	})()`)
	shown := tell[map[string][]*int64](t, x, `(() => {
		const of = (x, columns) => columns.map(c => value(x, c));
		const now = received.total.seconds.get(received.total.newest);
		const called = [...received.total.seconds.values()].filter(s => value(s, PASS) > 0);
		return {all: of(now, [PASS, BLOCK, AVERAGE, 'shed']),
			apple: of(received.table.rows[0], [PASS, BLOCK, AVERAGE, 'shed']),
			missing: of(now, [EXCEPTION, P99, FLIGHT, COMPLETE]), before: of(called[0], [PASS, BLOCK])};
	})()`)
	for what, want := range map[string]string{
		"all": "11 30 1500 90 ", "apple": "12 31 ? 91 ", "missing": "? ? ? ? ", "before": "5 2 ",
	} {
		got := ""
		for _, n := range shown[what] {
			got += text(n)
		}
		if got != want {
			t.Errorf("%s: the page has %s, want %s", what, got, want)
		}
	}
	l := x.look(t)
	if l.newest() != before+1 || fmt.Sprint(l.Rows) != "[{apple  12 31 – – – – 12}]" {
		t.Errorf("the table of second %d is %v; it should have apple of second %d, with 12 passed and 31 blocked",
			l.newest(), l.Rows, before+1)
	}
}
