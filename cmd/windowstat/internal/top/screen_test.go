package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// newScreen returns a simulated screen.
func newScreen(t testing.TB, width, height int) tcell.SimulationScreen {
	t.Helper()
	s := tcell.NewSimulationScreen("UTF-8")
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Fini)
	s.SetSize(width, height)
	return s
}

// contents returns the lines of a screen without trailing spaces. It fails for a cell with a control character, and for
// a character that is wider than the rest of its line.
func contents(t *testing.T, s tcell.SimulationScreen) []string {
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

// busy returns a ui with a minute of some resources.
func busy(resources ...string) *ui {
	e, _ := NewEndpoint("127.0.0.1:9719", nil)
	u := &ui{targets: []*target{newTarget(e, maxKept)}, order: order{column: 1}}
	for unix := int64(1000); unix < 1070; unix++ {
		a := result{newest: unix}
		for i, name := range resources {
			v := values{
				pass:      float64(100*i + int(unix%10)),
				block:     0,
				complete:  2,
				exception: float64(i),
				inFlight:  3,
				peak:      7,
				rtSum:     0.1,
				rtP99:     0.2,
			}
			for m, x := range v {
				a.samples = append(a.samples, sample{name, unix, metric(m), x})
			}
		}
		u.targets[0].take(a, time.Unix(unix, 0))
	}
	return u
}

func drawn(t *testing.T, u *ui, width, height int) []string {
	t.Helper()
	s := newScreen(t, width, height)
	u.draw(s, time.Unix(1070, 0))
	return contents(t, s)
}

func TestScreen(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.UTC
	got := strings.Join(drawn(t, busy("GET /a", "GET /b"), 80, 8), "\n")
	const want = `http://127.0.0.1:9719  00:17:49  2 resources  nothing is inbound
RESOURCE   PASS/s BLOCK/s  EXC/s     RT    P99 FLIGHT   PEAK LAST 19 s
GET /b        109       0      1 50.0ms  200ms      3      7 ███████████████████
GET /a          9       0      0 50.0ms  200ms      3      7 ▂▃▄▅▅▆▇██▁▂▃▄▅▅▆▇██



q quit  ? help  / filter  ←→ sort  ↑↓ select  enter seconds  esc back  [ ] past`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var hostile = []string{
	"\x1b[2J\x1b[31mred", "\x1b]0;title\a", "a\nb\r\tc\x00", "\u009b2J", strings.Repeat("x", 200),
	strings.Repeat("日本", 30), "e" + strings.Repeat("\u0301", 50),
	"\u202eright to left", strings.Repeat("\u1100", 60), "👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "\u0301", "", "\xff",
	"\ufe0f❤\ufe0f", strings.Repeat("\u0e33", 30), "_other",
}

// In each state, at any size and with any names, the screen has no invalid cell, and its first line names the endpoint.
func TestScreenSizes(t *testing.T) {
	ordinary := make([]string, 120)
	for i := range ordinary {
		ordinary[i] = fmt.Sprintf("GET /resource/%d", i)
	}
	away := errors.New("connection refused: " + strings.Repeat("long ", 100))
	sizes := [][2]int{{20, 5}, {160, 50}, {80, 24}, {1, 1}, {2, 2}, {10, 3}, {19, 4}, {40, 6}, {61, 10}, {100, 2}}
	for _, size := range sizes {
		s := newScreen(t, size[0], size[1])
		for _, names := range [][]string{nil, {"a"}, hostile, ordinary} {
			u := busy(names...)
			for _, keys := range []string{
				"", "/ x", "enter", "esc end", "enter", "down home pgdn", "esc", "space",
				"8 8 r left", "?", "[ {", "enter", "esc end", "t", "/ 日本\u202e nothing", "esc",
			} {
				press(u, keys)
				for _, err := range []error{nil, away} {
					u.targets[0].take(result{err: err, newest: u.targets[0].newest}, time.Unix(1069, 0))
					u.draw(s, time.Unix(1070, 0))
					got := contents(t, s)
					if size[0] >= 20 && err != nil && !strings.HasPrefix(got[0], "FAILING 1s") &&
						!strings.HasPrefix(got[0], "NOT KNOWN") {
						t.Errorf("%v, %d names, %q: %q", size, len(names), keys, got[0])
					}
				}
			}
		}
		drawn(t, newUI(t, "http://x"), size[0], size[1])
	}
	if long := drawn(t, busy(strings.Repeat("x", 200)), 80, 24); !strings.HasSuffix(long[1], " LAST 8 s") ||
		!strings.HasPrefix(long[2], strings.Repeat("x", 20)+"…") {
		t.Errorf("%q", long)
	}
	small := drawn(t, busy("GET /a", "GET /b"), 20, 5)
	want := []string{
		"http://127.0.0.1:97…", "RESOURCE   PASS/s B…", "GET /b        109  …", "GET /a          9  …",
		"q quit  ? help  / f…",
	}
	if !slices.Equal(small, want) {
		t.Errorf("%q", small)
	}
	large := drawn(t, busy(ordinary...), 300, 80)
	if !strings.HasPrefix(large[1], "RESOURCE") || !strings.HasSuffix(large[1], "LAST 60 s") ||
		!strings.HasPrefix(large[78], "GET /resource/43") ||
		large[79] == "" {
		t.Errorf("%q\n%q\n%q", large[1], large[78], large[79])
	}
}

// Without UTF-8 the graph consists of ASCII characters.
func TestScreenWithoutUnicode(t *testing.T) {
	s := tcell.NewSimulationScreen("US-ASCII")
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	defer s.Fini()
	busy("a").draw(s, time.Unix(1070, 0))
	if got := strings.Join(contents(t, s), "\n"); strings.ContainsAny(got, "▁█") ||
		!strings.Contains(got, " .:-==+*##_.:-==+*##") {
		t.Error(got)
	}
}

// Data that is no longer current is dimmed.
func TestAway(t *testing.T) {
	u := busy("a", "b")
	greyed := func() (n int) {
		s := newScreen(t, 100, 10)
		u.draw(s, time.Unix(1075, 0))
		cells, width, _ := s.GetContents()
		for y := 2; y < 6; y++ {
			if _, _, attributes := cells[y*width].Style.Decompose(); attributes&tcell.AttrDim != 0 &&
				cells[y*width].Runes[0] != ' ' {
				n++
			}
		}
		return n
	}
	if n := greyed(); n != 0 {
		t.Errorf("%d lines are grey", n)
	}
	u.targets[0].take(result{err: errors.New("x")}, time.Unix(1070, 0))
	u.targets[0].take(result{err: errors.New("x")}, time.Unix(1072, 0))
	if n := greyed(); n != 2 {
		t.Errorf("%d lines are grey", n)
	}
	if s := u.targets[0].trouble(0, 0, time.Unix(1075, 0)); s != "FAILING 5s 127.0.0.1:9719: x" {
		t.Error(s)
	}
	u.targets[0].take(result{newest: 1075, samples: counted(1075, map[string]float64{"a": 1})}, time.Unix(1075, 0))
	if n := greyed(); n != 0 { // b is no longer in the table
		t.Errorf("%d lines are grey", n)
	}
	if s := u.targets[0].trouble(1075, 0, time.Unix(1078, 0)); s != "" {
		t.Error(s)
	}
	u = newUI(t, "http://x")
	u.targets[0].take(result{err: errors.New("x\ny")}, time.Unix(1070, 0))
	if s := u.targets[0].trouble(0, 0, time.Unix(1075, 0)); s != "NO SECONDS x: x\ny" {
		t.Error(s)
	}
	if got := drawn(t, u, 14, 8); got[0] != "NO SECONDS x:" || got[1] != "x y" { // the whole error
		t.Errorf("%q", got)
	}
}
