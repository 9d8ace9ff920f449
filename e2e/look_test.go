package e2e

import (
	"net/http"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// A look is the content of the live page at one time.
type look struct {
	State   string
	Subject string
	// The charts, with one point for each second; nil is a second without data.
	Times                  []int64
	Pass, Block, Exception []*int64
	Rows                   []tableRow
	Focus                  string // the text of the element with the focus
}

// A tableRow is the text of a row of the table.
type tableRow struct{ Name, Trouble, Pass, Block, Exception, Average, P99, Flight, Peak string }

// look reads the content of the page.
func (x *tab) look(t *testing.T) look {
	t.Helper()
	return tell[look](t, x, `(() => {
		const text = id => document.getElementById(id).textContent;
		const [Times, Pass, Block, Exception] = charts.calls.plot.data;
		const Rows = [...document.querySelectorAll('#rows tr')].map(tr => {
			const [Name, Trouble, Pass, Block, Exception, P99, Average, Flight, Peak] =
				[...tr.children].map(td => td.textContent);
			return {Name, Trouble, Pass, Block, Exception, Average, P99, Flight, Peak};
		});
		const Focus = document.activeElement.textContent.slice(0, 300);
		return {State: text('state'), Subject: text('subject'), Times, Pass, Block, Exception, Rows, Focus};
	})()`)
}

// newest returns the last second on the page, or 0 without seconds.
func (l look) newest() int64 {
	if len(l.Times) == 0 {
		return 0
	}
	return l.Times[len(l.Times)-1]
}

// checkTimes checks that the page has each second once, without gaps.
func (l look) checkTimes(t *testing.T, least int) {
	t.Helper()
	for i, at := range l.Times {
		if i > 0 && at != l.Times[i-1]+1 {
			t.Errorf("second %d follows second %d", at, l.Times[i-1])
		}
	}
	if len(l.Times) < least {
		t.Errorf("the page shows %d seconds; it should show %d at least", len(l.Times), least)
	}
}

// serveLive serves the live page of a collector, wrapped by around if around is not nil.
func serveLive(t *testing.T, c *collector.Collector, around func(http.Handler) http.Handler) (url string) {
	t.Helper()
	p, err := live.New(c, live.Options{Title: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = p
	if around != nil {
		h = around(p)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, h, l)
	return "http://" + l.Addr().String() + "/live/"
}
