package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

// liveEaten views the page through a proxy that holds streams back: at first completely, then all but their header. The
// page polls each second instead, and lacks nothing. When the proxy passes the stream, the page uses the stream again.
func liveEaten(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"r0000", "r0001", "r0050"}, collector.Options{})
	made := newLedger(p)
	at, err := url.Parse(serveLive(t, p.stats, nil))
	if err != nil {
		t.Fatal(err)
	}
	at.Path = ""
	e := &eater{proxy: httputil.NewSingleHostReverseProxy(at)}
	l := listen(t, "127.0.0.1:0")
	serve(t, e, l)
	stop := p.start(t)
	for _, flushes := range []bool{false, true} {
		e.flushes.Store(flushes)
		x := openTab(t, browser, "http://"+l.Addr().String()+livePath)
		x.await(t, `byId('state').textContent === 'live, asking each second' && received.total.seconds.size >= 12`)
		x.look(t).checkTimes(t, 12)
	}
	if n := e.eaten.Load(); n < 10 {
		t.Errorf("only %d pieces of streams were held back", n)
	}
	x := openTab(t, browser, "http://"+l.Addr().String()+livePath)
	x.await(t, `received.total.seconds.size >= 15`)
	e.open.Store(true)
	x.await(t, `byId('state').textContent === 'live'`)
	x.await(t, `received.total.seconds.size >= 20`)
	shown := x.look(t)
	// A page that is disconnected in favor of another host shows the reason, and polls each second.
	x.run(t, `connection.stream.dispatchEvent(new MessageEvent('full', { data: 'all places are taken' }))`)
	x.await(t, `byId('state').textContent === 'live, asking each second: all places are taken'`)
	stop()
	shown.checkTimes(t, 20)
	for i, at := range shown.Times {
		if c := made.sums[at]; shown.Pass[i] == nil || *shown.Pass[i] != int64(c.pass) ||
			*shown.Block[i] != int64(c.block) {
			t.Errorf("second %d has %s passed and %s blocked; it should have %v", at, text(shown.Pass[i]),
				text(shown.Block[i]), fmt.Sprint(c))
		}
	}
}

// liveFull opens one viewer too many. The page shows this, and polls each second. It does not report an error each time
// that it requests a stream, because screen readers would announce every report.
func liveFull(t *testing.T, browser context.Context) {
	p := newPaced(t, time.Now(), []string{"r0000"}, collector.Options{})
	newLedger(p)
	page, err := live.New(p.stats, live.Options{MaxViewers: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, page, l)
	url := "http://" + l.Addr().String() + livePath
	first, err := http.Get(url + "stream") // takes the only stream
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	stop := p.start(t)
	defer stop()
	x := openTab(t, browser, url)
	x.await(t, `byId('state').textContent === 'live, asking each second: all 1 places for viewers are taken'`)
	x.run(t, `window.said = []; new MutationObserver(() => `+
		`said.push(byId('state').textContent)).observe(byId('state'), { childList: true })`)
	x.await(t, `received.total.seconds.size >= 30`) // the page has requested a stream again
	if said := tell[string](t, x, `said.join('; ')`); said != "" {
		t.Errorf("the page reported %q", said)
	}
}

// An eater is a proxy that reads streams and passes nothing on until it is open, except their headers if it flushes.
type eater struct {
	proxy         http.Handler
	flushes, open atomic.Bool
	eaten         atomic.Int64
}

func (e *eater) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/stream") && !e.open.Load() {
		w = &eating{w, e}
	}
	e.proxy.ServeHTTP(w, r)
}

type eating struct {
	http.ResponseWriter
	eater *eater
}

func (w *eating) Write(b []byte) (int, error) {
	w.eater.eaten.Add(1)
	return len(b), nil
}

func (w *eating) FlushError() error {
	if !w.eater.flushes.Load() {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}
