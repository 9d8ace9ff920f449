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
	x.await(t, `known.seconds.filter(s => s.rows && s.rows.has('apple')).length >= 3`)
	stop()
	before := tell[int64](t, x, `(() => {
		const before = newest().at;
		take({epoch: known.epoch + 1, first: 0, fresh: true, columns: ['shed', 'rt_avg', 'block', 'pass'], names: ['', 'banana', 'apple'],
			seconds: [[before + 1, [[-1, 90, 1500, 30, 11], [2, 91, -1, 31, 12]]]]});
		draw();
		return before;
	})()`)
	shown := tell[map[string][]*int64](t, x, `(() => {
		const called = known.seconds.filter(s => s.rows && s.rows.has('apple')), of = (name, columns) => columns.map(c => value(newest(), name, c));
		const all = of(ALL, [PASS, BLOCK, AVERAGE, 'shed']), apple = of('apple', [PASS, BLOCK, AVERAGE, 'shed']), banana = of('banana', [PASS, AVERAGE]);
		return {all, apple, banana, missing: of(ALL, [EXCEPTION, P99, FLIGHT]), before: [PASS, BLOCK].map(c => value(called[0], 'apple', c))};
	})()`)
	for what, want := range map[string]string{
		"all": "11 30 1500 90 ", "apple": "12 31 ? 91 ", "banana": "0 ? ", "missing": "? ? ? ", "before": "5 2 ",
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
	if l.newest() != before+1 || fmt.Sprint(l.Rows) != "[{apple 12 31 – – – – 12}]" {
		t.Errorf("the table of second %d is %v; it should have apple of second %d, with 12 passed and 31 blocked", l.newest(), l.Rows, before+1)
	}
}
