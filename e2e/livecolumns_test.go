package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// liveColumns has a server come back that sends other columns, in another order. Seconds from before keep their numbers, new
// ones are read by their names, and of a column that is not sent nothing is shown.
func liveColumns(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"apple"}, collector.Options{})
	p.calls = func(int, int64) count { return count{pass: 5, block: 2} }
	stop := p.start(t)
	x := openTab(t, browser, serveLive(t, p.stats, nil))
	x.await(t, `known.total.seconds.size >= 3 && known.table.rows.length === 1`)
	stop()
	before := tell[int64](t, x, `(() => {
		if (following.source) following.source.close();
		const before = known.total.newest;
		take({process: known.process + 1, inbound: false, fresh: true, columns: ['shed', 'rt_avg', 'block', 'pass'], after: '', now: (before + 2) * 1000,
			machine: [], machine_columns: [], total: [[before + 1, 90, 1500, 30, 11]], resource: null, at: before + 1,
			table: {first: before + 1, end: before + 2, resources: 1, matches: 1, rows: [{n: 2, v: [91, -1, 31, 12], name: 'apple', past: [7, 12]}]}});
		draw();
		return before;
	})()`)
	shown := tell[map[string][]*int64](t, x, `(() => {
		const of = (x, columns) => columns.map(c => value(x, c)), now = known.total.seconds.get(known.total.newest);
		const called = [...known.total.seconds.values()].filter(s => value(s, PASS) > 0);
		return {all: of(now, [PASS, BLOCK, AVERAGE, 'shed']), apple: of(known.table.rows[0], [PASS, BLOCK, AVERAGE, 'shed']),
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
			t.Errorf("%s: the page knows %s; it should know %s", what, got, want)
		}
	}
	l := x.look(t)
	if l.newest() != before+1 || fmt.Sprint(l.Rows) != "[{apple  12 31 – – – – 12}]" {
		t.Errorf("the table of second %d is %v; it should have apple of second %d, with 12 passed and 31 blocked", l.newest(), l.Rows, before+1)
	}
}
