package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/gdamore/tcell/v2"
	"github.com/prometheus/common/config"
	"github.com/rivo/uniseg"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// newScreen is a screen of a size.
func newScreen(t *testing.T, width, height int) tcell.SimulationScreen {
	t.Helper()
	s := tcell.NewSimulationScreen("UTF-8")
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Fini)
	s.SetSize(width, height)
	return s
}

// lines is what stands on a screen, without spaces at the end. It looks at every cell: none may hold what does things, or
// reach over the edge.
func lines(t *testing.T, s tcell.SimulationScreen) []string {
	t.Helper()
	cells, width, height := s.GetContents()
	list := make([]string, height)
	for y := range list {
		var b strings.Builder
		for x := 0; x < width; {
			cell := string(cells[y*width+x].Runes)
			for _, r := range cell {
				if !unicode.IsPrint(r) {
					t.Errorf("%+q at %d, %d", cell, x, y)
				}
			}
			b.WriteString(cell)
			x += max(uniseg.StringWidth(cell), 1)
			if x > width {
				t.Errorf("%+q reaches over the edge in line %d", cell, y)
			}
		}
		list[y] = strings.TrimRight(b.String(), " ")
	}
	return list
}

// busy is a view of some resources, a minute old.
func busy(resources ...string) *ui {
	u := &ui{endpoint: "http://127.0.0.1:9719", board: newBoard(), order: order{column: 1}}
	for unix := int64(1000); unix < 1070; unix++ {
		a := answer{newest: unix}
		for i, name := range resources {
			s := unknown(unix)
			s.values = [metrics]float64{pass: float64(100*i + int(unix%10)), block: 0, complete: 2, exception: float64(i), inFlight: 3, peak: 7, rtSum: 0.1, rtP99: 0.2}
			for m, v := range s.values {
				a.samples = append(a.samples, sample{name, unix, metric(m), v})
			}
		}
		u.take(a, time.Unix(unix, 0))
	}
	return u
}

func drawn(t *testing.T, u *ui, width, height int) []string {
	t.Helper()
	s := newScreen(t, width, height)
	u.draw(s, time.Unix(1070, 0))
	return lines(t, s)
}

func press(u *ui, keys string) (quit bool) {
	named := map[string]tcell.Key{
		"esc": tcell.KeyEscape, "enter": tcell.KeyEnter, "up": tcell.KeyUp, "down": tcell.KeyDown, "left": tcell.KeyLeft, "right": tcell.KeyRight,
		"home": tcell.KeyHome, "end": tcell.KeyEnd, "pgup": tcell.KeyPgUp, "pgdn": tcell.KeyPgDn, "back": tcell.KeyBackspace2, "ctrl-c": tcell.KeyCtrlC, "ctrl-u": tcell.KeyCtrlU,
	}
	for _, k := range strings.Fields(keys) {
		if key, ok := named[k]; ok {
			quit = u.key(tcell.NewEventKey(key, 0, 0))
			continue
		}
		if k == "space" {
			k = " "
		}
		for _, r := range k {
			quit = u.key(tcell.NewEventKey(tcell.KeyRune, r, 0))
		}
	}
	return quit
}

func TestScreen(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	got := strings.Join(drawn(t, busy("GET /a", "GET /b"), 80, 8), "\n")
	const want = `http://127.0.0.1:9719  00:17:49  2 resources  sum: nested calls count again
RESOURCE   PASS/s BLOCK/s  EXC/s     RT    P99 FLIGHT   PEAK LAST 19 s
sum           118       0      1 50.0ms      -      6      - █████████▇█████████
GET /b        109       0      1 50.0ms  200ms      3      7 ███████████████████
GET /a          9       0      0 50.0ms  200ms      3      7 ▂▃▄▅▅▆▇██▁▂▃▄▅▅▆▇██


q quit  / filter  ←→ sort  r reverse  ↑↓ select  enter seconds  space pause`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var hostile = []string{
	"\x1b[2J\x1b[31mred", "\x1b]0;title\a", "a\nb\r\tc\x00", "\u009b2J", strings.Repeat("x", 200), strings.Repeat("日本", 30), "e" + strings.Repeat("\u0301", 50),
	"\u202eright to left", strings.Repeat("\u1100", 60), "👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "\u0301", "", "\xff", "\ufe0f❤\ufe0f", strings.Repeat("\u0e33", 30), "_other",
}

// At every size, with every name, in every state: nothing breaks, and the first line says where one is.
func TestScreenSizes(t *testing.T) {
	ordinary := make([]string, 120)
	for i := range ordinary {
		ordinary[i] = fmt.Sprintf("GET /resource/%d", i)
	}
	away := errors.New("connection refused: " + strings.Repeat("long ", 100))
	for _, size := range [][2]int{{20, 5}, {160, 50}, {80, 24}, {1, 1}, {2, 2}, {10, 3}, {19, 4}, {40, 6}, {61, 10}, {100, 2}} {
		s := newScreen(t, size[0], size[1])
		for _, names := range [][]string{nil, {"a"}, hostile, ordinary} {
			u := busy(names...)
			for _, keys := range []string{"", "/ x", "enter", "esc end", "enter", "down home pgdn", "esc", "space", "8 8 r left", "/ 日本\u202e nothing", "esc"} {
				press(u, keys)
				for _, err := range []error{nil, away} {
					u.take(answer{err: err, newest: u.board.newest, restarted: err == nil}, time.Unix(1069, 0))
					u.draw(s, time.Unix(1070, 0))
					got := lines(t, s)
					if size[0] >= 20 && err != nil && !strings.HasPrefix(got[0], "AWAY 1s") {
						t.Errorf("%v, %d names, %q: %q", size, len(names), keys, got[0])
					}
				}
			}
		}
		drawn(t, &ui{endpoint: "http://x", board: newBoard()}, size[0], size[1])
	}
	if long := drawn(t, busy(strings.Repeat("x", 200)), 80, 24); !strings.HasSuffix(long[1], " LAST 8 s") || !strings.HasPrefix(long[3], strings.Repeat("x", 20)+"…") {
		t.Errorf("%q", long)
	}
	small := drawn(t, busy("GET /a", "GET /b"), 20, 5)
	if want := []string{"http://127.0.0.1:97…", "RESOURCE      PASS/s", "GET /b           109", "GET /a             9", "q quit  / filter  ←…"}; fmt.Sprint(small) != fmt.Sprint(want) {
		t.Errorf("%q", small)
	}
	large := drawn(t, busy(ordinary...), 300, 80)
	if !strings.HasPrefix(large[1], "RESOURCE") || !strings.HasSuffix(large[1], "LAST 60 s") || !strings.HasPrefix(large[78], "GET /resource/44") || large[79] == "" {
		t.Errorf("%q\n%q\n%q", large[1], large[78], large[79])
	}
}

// Without UTF-8 the graph is made of other characters.
func TestScreenWithoutUnicode(t *testing.T) {
	s := tcell.NewSimulationScreen("US-ASCII")
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	defer s.Fini()
	busy("a").draw(s, time.Unix(1070, 0))
	if got := strings.Join(lines(t, s), "\n"); strings.ContainsAny(got, "▁█") || !strings.Contains(got, " .:-==+*##_.:-==+*##") {
		t.Error(got)
	}
}

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		keys, want string // what is on the screen
		not        string
	}{
		{"/ b", "filter: b", "GET /a "},
		{"/ b enter", `1 with "b"`, "filter: b"},
		{"/ bx back enter", `1 with "b"`, "GET /a "},
		{"/ b esc", "3 resources  sum:", "filter:"},
		{"/ b enter esc", "3 resources  sum:", "filter:"},
		{"/ q enter", "no resource has this in its name", "GET"},
		{"/ bbb ctrl-u a", `1 with "a"`, "GET /b"},
		{"enter", "\nGET /c\nSECOND ", "RESOURCE"},
		{"down down enter", "\nGET /b\nSECOND ", "RESOURCE"},
		{"end enter", "\nGET /a\nSECOND ", "RESOURCE"},
		{"end enter up", "\nGET /b\nSECOND ", "RESOURCE"},
		{"end enter esc", "RESOURCE", "SECOND "},
		{"end enter enter", "RESOURCE", "SECOND "},
		{"space", "PAUSED", ""},
		{"space space", "RESOURCE", "PAUSED"},
		{"r", "\nGET /a", ""},
		{"1 enter", "\nGET /a\nSECOND", ""},
		{"left home enter", "\nGET /a\nSECOND", ""},
		{"1 1 enter", "\nGET /c\nSECOND", ""},
		{"2 enter", "\nGET /a\nSECOND", ""},                                   // by passes already: the other way round
		{"right right right right right right enter", "\nGET /a\nSECOND", ""}, // by peak, all the same, then by name
	} {
		u := busy("GET /a", "GET /b", "GET /c")
		if press(u, tc.keys) {
			t.Errorf("%s: it quits", tc.keys)
		}
		got := strings.Join(drawn(t, u, 100, 12), "\n")
		if !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not) {
			t.Errorf("%s: no %q, or %q, in\n%s", tc.keys, tc.want, tc.not, got)
		}
	}
	for _, keys := range []string{"q", "ctrl-c", "/ a ctrl-c", "enter q"} {
		if !press(busy("a"), keys) {
			t.Errorf("%s does not quit", keys)
		}
	}
	if press(busy("a"), "/ q") {
		t.Error("a filter cannot have a q")
	}
	// A resource that is looked at and goes leaves the table, and keys are those of the table. Values of no resource are none.
	u := busy("GET /a", "GET /b")
	press(u, "enter")
	at := u.board.newest + 2*minute
	u.take(answer{samples: []sample{{"GET /c", at, pass, 1}, {"", at, pass, 1}}, newest: at}, time.Now())
	press(u, "down")
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "RESOURCE") || !strings.Contains(got, "  1 resource") {
		t.Errorf("it is shown as\n%s", got)
	}
	// A selection stays with its resource, and on the screen.
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("r%02d", i))
	}
	u = busy(many...)
	drawn(t, u, 100, 12)
	press(u, "down pgdn pgdn") // the first, and two screens down
	if got := drawn(t, u, 100, 12); u.selected != "r83" || !strings.HasPrefix(got[10], "r83") {
		t.Errorf("%s\n%s", u.selected, strings.Join(got, "\n"))
	}
	press(u, "r")
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "\nr83") {
		t.Error(got)
	}
}

// What is not new any more is shown as it was, greyed.
func TestAway(t *testing.T) {
	u := busy("a", "b")
	greyed := func() (n int) {
		s := newScreen(t, 100, 10)
		u.draw(s, time.Unix(1075, 0))
		cells, width, _ := s.GetContents()
		for y := 2; y < 6; y++ {
			if _, _, attributes := cells[y*width].Style.Decompose(); attributes&tcell.AttrDim != 0 && cells[y*width].Runes[0] != ' ' {
				n++
			}
		}
		return n
	}
	if n := greyed(); n != 0 {
		t.Errorf("%d lines are grey", n)
	}
	u.take(answer{err: errors.New("x")}, time.Unix(1070, 0))
	u.take(answer{err: errors.New("x")}, time.Unix(1072, 0))
	if n := greyed(); n != 3 {
		t.Errorf("%d lines are grey", n)
	}
	if s, bad := u.status(time.Unix(1075, 0)); s != "AWAY 5s: x" || !bad {
		t.Error(s)
	}
	u.take(answer{newest: 1075, restarted: true, samples: counted(1075, map[string]float64{"a": 1})}, time.Unix(1075, 0))
	if n := greyed(); n != 1 { // b is not there any more
		t.Errorf("%d lines are grey", n)
	}
	if s, bad := u.status(time.Unix(1078, 0)); s != "RESTARTED 3s ago" || bad {
		t.Error(s)
	}
	if s, _ := u.status(time.Unix(1175, 0)); s != "" {
		t.Error(s)
	}
	u = &ui{board: newBoard()}
	u.take(answer{err: errors.New("x\ny")}, time.Unix(1070, 0))
	if s, _ := u.status(time.Unix(1075, 0)); s != "NO SECONDS: x; y" {
		t.Error(s)
	}
	if got := drawn(t, u, 20, 8); got[3] != "x" || got[4] != "y" { // the whole of it
		t.Errorf("%q", got)
	}
}

// handled is a connection to a handler without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// within runs a service and the screen on it for a time of its own, and fails if anything is left running.
func within(t *testing.T, h func(*collector.Collector) http.Handler, do func(s tcell.SimulationScreen, c *collector.Collector, quit func()), want func(any, error)) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEndpoint("http://service", config.DefaultHTTPClientConfig)
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
			err := Run(ctx, s, e, Options{})
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

// The screen follows the service second by second, and ends with a key or with ctx, leaving nothing behind.
func TestRun(t *testing.T) {
	for _, how := range []string{"q", "ctx"} {
		within(t, secondsOf(t), func(s tcell.SimulationScreen, c *collector.Collector, quit func()) {
			for n := range 5 {
				for range n {
					c.Resource("a").Block("")
				}
				time.Sleep(time.Second)
			}
			time.Sleep(late + time.Millisecond)
			synctest.Wait()
			got := strings.Join(lines(t, s), "\n")
			if !strings.Contains(got, "\na               0       4      0") {
				t.Errorf("got\n%s", got)
			}
			s.InjectKey(tcell.KeyRune, ' ', 0)
			s.SetSize(40, 10)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := lines(t, s); len(got) != 10 || !strings.HasPrefix(got[0], "PAUSED") || !strings.Contains(strings.Join(got, "\n"), "4") {
				t.Errorf("%q", got)
			}
			s.InjectKey(tcell.KeyRune, ' ', 0)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := strings.Join(lines(t, s), "\n"); strings.Contains(got, "4      ") {
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

// It ends while an answer does not come.
func TestRunEndsWhileItWaits(t *testing.T) {
	stuck := func(*collector.Collector) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}
	within(t, stuck, func(s tcell.SimulationScreen, _ *collector.Collector, _ func()) {
		time.Sleep(3 * time.Second)
		s.InjectKey(tcell.KeyCtrlC, 0, 0)
	}, ended(t))
}

// A panic while reading gives back the terminal before it goes on.
func TestRunGivesBackTheTerminal(t *testing.T) {
	var screen tcell.SimulationScreen
	panics := func(*collector.Collector) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })
	}
	within(t, panics, func(s tcell.SimulationScreen, _ *collector.Collector, _ func()) {
		screen = s
	}, func(v any, _ error) {
		if text := fmt.Sprint(v); !strings.HasPrefix(text, "oh\n") || !strings.Contains(text, "screen_test.go") {
			t.Errorf("%v", v)
		}
		if _, _, there := screen.GetCursor(); there {
			t.Error("the cursor")
		}
		if screen.PollEvent() != nil { // as after Fini
			t.Error("the screen is still in use")
		}
	})
}

// A terminal that cannot be used is an error, and nothing is left running.
func TestRunWithoutATerminal(t *testing.T) {
	s := tcell.NewSimulationScreen("nonsense")
	if err := Run(t.Context(), s, newEndpoint(t, "http://x"), Options{}); err == nil || !strings.Contains(err.Error(), "terminal cannot be used") {
		t.Error(err)
	}
	if err := Run(t.Context(), s, newEndpoint(t, "http://x"), Options{Sort: "x"}); err == nil {
		t.Error("no error")
	}
}
