package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

func press(u *ui, keys string) (quit bool) {
	named := map[string]tcell.Key{
		"esc": tcell.KeyEscape, "enter": tcell.KeyEnter, "up": tcell.KeyUp, "down": tcell.KeyDown,
		"left": tcell.KeyLeft, "right": tcell.KeyRight,
		"home": tcell.KeyHome, "end": tcell.KeyEnd, "pgup": tcell.KeyPgUp, "pgdn": tcell.KeyPgDn,
		"back": tcell.KeyBackspace2, "ctrl-c": tcell.KeyCtrlC, "ctrl-u": tcell.KeyCtrlU,
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

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		keys, want string // want is a part of the screen
		not        string
	}{
		{"/ b", "filter: b", "GET /a "},
		{"/ b enter", `1 resource with "b"`, "filter: b"},
		{"/ bx back enter", `1 resource with "b"`, "GET /a "},
		{"/ b esc", "3 resources  nothing", "filter:"},
		{"/ b enter esc", "3 resources  nothing", "filter:"},
		{"/ q enter", "no resources\nesc shows", "GET"},
		{"/ bbb ctrl-u a", `1 resource with "a"`, "GET /b"},
		{"enter", "\nGET /c\nSECOND ", "RESOURCE"},
		{"down down enter", "\nGET /b\nSECOND ", "RESOURCE"},
		{"end enter", "\nGET /a\nSECOND ", "RESOURCE"},
		{"end enter up", "\nGET /b\nSECOND ", "RESOURCE"},
		{"end enter esc", "RESOURCE", "SECOND "},
		{"end enter enter", "RESOURCE", "SECOND "},
		{"space", "  PAST ", ""},
		{"space space", "RESOURCE", "PAST"},
		{"?", "\n[ ]  { }     back and forth in time", "GET /a"},
		{"? x", "\nRESOURCE  ", "back and forth in time"},
		{"r", "\nGET /a", ""},
		{"1 enter", "\nGET /a\nSECOND", ""},
		{"left home enter", "\nGET /a\nSECOND", ""},
		{"1 1 enter", "\nGET /c\nSECOND", ""},
		{"2 enter", "\nGET /a\nSECOND", ""},                                   // the second press reverses the order
		{"right right right right right right enter", "\nGET /a\nSECOND", ""}, // equal peaks are sorted by name
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
	for _, text := range helpLines() {
		if n := utf8.RuneCountInString(text); n > 80 {
			t.Errorf("%q has %d characters", text, n)
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
	// If the selected resource disappears, it leaves the table. Its seconds stay on the screen until another selection.
	u := busy("GET /a", "GET /b")
	press(u, "enter")
	at := u.targets[0].newest + 2*minute
	u.targets[0].take(result{samples: []sample{{"GET /c", at, pass, 1}}, newest: at}, time.Now())
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "\nGET /b\nSECOND") {
		t.Errorf("it is shown as\n%s", got)
	}
	press(u, "esc")
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "RESOURCE") ||
		!strings.Contains(got, "  1 resource") ||
		strings.Contains(got, "GET /b") {
		t.Errorf("it is shown as\n%s", got)
	}
	// The selection follows its resource, and stays on the screen.
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("r%02d", i))
	}
	u = busy(many...)
	drawn(t, u, 100, 12)
	press(u, "down pgdn pgdn") // the first line, then two screens down
	if got := drawn(t, u, 100, 12); u.selected.name != "r81" || !strings.HasPrefix(got[10], "r81") {
		t.Errorf("%s\n%s", u.selected.name, strings.Join(got, "\n"))
	}
	press(u, "r")
	if got := strings.Join(drawn(t, u, 100, 12), "\n"); !strings.Contains(got, "\nr81") {
		t.Error(got)
	}
}
