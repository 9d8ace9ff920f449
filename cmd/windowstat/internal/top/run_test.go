package top

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// handled is a transport that calls a handler without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// within runs a service and its screen with fake time. It fails if a goroutine remains.
func within(
	t *testing.T,
	h func(*collector.Collector) http.Handler,
	do func(s tcell.SimulationScreen, c *collector.Collector, quit func()),
	want func(any, error),
) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEndpoint("http://service", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.client.Transport = handled{h(c)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := tcell.NewSimulationScreen("UTF-8")
		done := make(chan func(), 1)
		go func() {
			defer func() {
				v := recover()
				if v != nil {
					done <- func() { want(v, nil) }
				}
			}()
			err := Run(ctx, s, []*Endpoint{e}, Options{})
			done <- func() { want(nil, err) }
		}()
		synctest.Wait()
		do(s, c, cancel)
		(<-done)()
	})
}

func secondsOf(t *testing.T) func(*collector.Collector) http.Handler {
	return func(c *collector.Collector) http.Handler {
		h, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
}

func ended(t *testing.T) func(any, error) {
	return func(v any, err error) {
		if v != nil || err != nil {
			t.Error(v, err)
		}
	}
}

// The screen shows each second. It ends with a key or with ctx, and leaves no goroutine.
func TestRun(t *testing.T) {
	for _, how := range []string{"q", "ctx"} {
		within(t, secondsOf(t), func(s tcell.SimulationScreen, c *collector.Collector, quit func()) {
			for n := range 5 {
				for range n {
					c.Resource("a").Block("")
				}
				time.Sleep(time.Second)
			}
			time.Sleep(pollDelay + time.Millisecond)
			synctest.Wait()
			got := strings.Join(contents(t, s), "\n")
			if !strings.Contains(got, "\na               0       4      0") {
				t.Errorf("got\n%s", got)
			}
			s.InjectKey(tcell.KeyRune, ' ', 0)
			s.SetSize(40, 10)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := contents(t, s); len(got) != 10 ||
				!strings.HasPrefix(got[0], "http://service  PAST 00:00:04, 3 s back") ||
				!strings.Contains(strings.Join(got, "\n"), " 4 ") {
				t.Errorf("%q", got)
			}
			s.InjectKey(tcell.KeyRune, ' ', 0)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := strings.Join(contents(t, s), "\n"); strings.Contains(got, "4      ") {
				t.Errorf("got\n%s", got)
			}
			if how == "q" {
				s.InjectKey(tcell.KeyRune, 'q', 0)
			} else {
				quit()
			}
		}, ended(t))
	}
}

// It ends during a request without a response.
func TestRunEndsWhileItWaits(t *testing.T) {
	stuck := func(*collector.Collector) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}
	within(t, stuck, func(s tcell.SimulationScreen, _ *collector.Collector, _ func()) {
		time.Sleep(3 * time.Second)
		s.InjectKey(tcell.KeyCtrlC, 0, 0)
	}, ended(t))
}

// A live page that does not respond delays no second.
func TestRunWithoutDetails(t *testing.T) {
	stuck := func(c *collector.Collector) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/metrics/seconds", secondsOf(t)(c))
		mux.HandleFunc("/live/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		return mux
	}
	within(t, stuck, func(s tcell.SimulationScreen, c *collector.Collector, quit func()) {
		s.SetSize(100, 12)
		c.Resource("a").Block("")
		time.Sleep(2 * time.Second)
		s.InjectKey(tcell.KeyEnter, 0, 0)
		time.Sleep(6500 * time.Millisecond)
		synctest.Wait()
		if got := strings.Join(contents(t, s), "\n"); !strings.Contains(got, "codes: ") ||
			!strings.Contains(got, "SECOND ") ||
			!strings.Contains(got, " 00:00:07 ") && !strings.Contains(got, " 00:00:06 ") {
			t.Errorf("got\n%s", got)
		}
		quit()
	}, ended(t))
}

// A panic of a reader restores the terminal first.
func TestRunGivesBackTheTerminal(t *testing.T) {
	var screen tcell.SimulationScreen
	panics := func(*collector.Collector) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })
	}
	within(t, panics, func(s tcell.SimulationScreen, _ *collector.Collector, _ func()) {
		screen = s
	}, func(v any, _ error) {
		if text := fmt.Sprint(v); !strings.HasPrefix(text, "oh\n") || !strings.Contains(text, "run_test.go") {
			t.Errorf("%v", v)
		}
		if _, _, there := screen.GetCursor(); there {
			t.Error("the cursor")
		}
		if screen.PollEvent() != nil { // PollEvent returns nil after Fini
			t.Error("the screen is still in use")
		}
	})
}

// An unusable terminal is an error, and no goroutine remains.
func TestRunWithoutATerminal(t *testing.T) {
	s := tcell.NewSimulationScreen("nonsense")
	if err := Run(t.Context(), s, []*Endpoint{newEndpoint(t, "http://x")}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "terminal cannot be used") {
		t.Error(err)
	}
	if err := Run(t.Context(), s, []*Endpoint{newEndpoint(t, "http://x")}, Options{Sort: "x"}); err == nil {
		t.Error("no error")
	}
}
