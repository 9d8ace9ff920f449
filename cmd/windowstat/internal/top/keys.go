package top

import (
	"fmt"

	"github.com/gdamore/tcell/v2"
)

// maxFilter is how long a filter may be.
const maxFilter = 100

// key handles a key, and reports whether it quits.
func (u *ui) key(k *tcell.EventKey) (quit bool) {
	switch {
	case k.Key() == tcell.KeyCtrlC:
		return true
	case u.help:
		u.help = false
		return k.Key() == tcell.KeyRune && k.Rune() == 'q'
	case u.typing:
		u.typed(k)
		return false
	}
	switch k.Key() {
	case tcell.KeyEscape:
		switch {
		case u.opened:
			u.opened = false
		case u.selected != key{}:
			u.selected = key{}
		default:
			u.filter = ""
		}
	case tcell.KeyEnter:
		if !u.opened && u.selected == (key{}) {
			u.move(0)
		}
		u.opened = !u.opened && u.selected != key{}
	case tcell.KeyUp:
		u.move(-1)
	case tcell.KeyDown:
		u.move(1)
	case tcell.KeyPgUp:
		u.move(-max(u.height, 1))
	case tcell.KeyPgDn:
		u.move(max(u.height, 1))
	case tcell.KeyHome:
		u.move(-maxResources)
	case tcell.KeyEnd:
		if u.past > 0 {
			u.past = 0
		} else {
			u.move(maxResources * len(u.targets))
		}
	case tcell.KeyLeft:
		u.sortBy((u.order.column + len(columns) - 1) % len(columns))
	case tcell.KeyRight:
		u.sortBy((u.order.column + 1) % len(columns))
	case tcell.KeyRune:
		return u.letter(k.Rune())
	}
	return false
}

// letter handles a letter, and reports whether it quits.
func (u *ui) letter(r rune) (quit bool) {
	switch {
	case r == 'q':
		return true
	case r == '?':
		u.help = true
	case r == '/':
		u.typing, u.opened = true, false
	case r == '[':
		u.step(-1)
	case r == ']':
		u.step(1)
	case r == '{':
		u.step(-10)
	case r == '}':
		u.step(10)
	case r == ' ' && u.past > 0:
		u.past = 0
	case r == ' ':
		u.past = u.now()
	case r == 't':
		u.separate()
	case r == 'r':
		u.order.reverse = !u.order.reverse
	case r == 'j':
		u.move(1)
	case r == 'k':
		u.move(-1)
	case r >= '1' && int(r-'1') < len(columns):
		u.sortBy(int(r - '1'))
	}
	return false
}

// typed handles a key while the user types the filter.
func (u *ui) typed(k *tcell.EventKey) {
	switch k.Key() {
	case tcell.KeyEnter:
		u.typing = false
	case tcell.KeyEscape:
		u.typing, u.filter = false, ""
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		if r := []rune(u.filter); len(r) > 0 {
			u.filter = string(r[:len(r)-1])
		}
	case tcell.KeyCtrlU:
		u.filter = ""
	case tcell.KeyRune:
		if len(u.filter) < maxFilter {
			u.filter += string(k.Rune())
		}
	}
}

// helpKeys are the keys, which the last line of the screen has the most important of.
var helpKeys = [][2]string{
	{"q", "quit"},
	{"/", "show resources with a text in their name; esc shows all"},
	{"← →  1 to 8", "sort by another column; the same again, or r, reverses"},
	{"↑ ↓  j k", "select; PgUp, PgDn, Home, End"},
	{"enter", "the seconds of what is selected, its limits and refusals; esc back"},
	{"[ ]  { }", "back and forth in time by a second, or ten; End returns to now"},
	{"space", "stay at this second; again, return to now"},
	{"t", "several targets: a line for each, or added up"},
}

// helpLines are what ? shows.
func helpLines() (list []string) {
	for _, k := range helpKeys {
		list = append(list, fmt.Sprintf("%-12s %s", k[0], k[1]))
	}
	list = append(list, "")
	for _, c := range columns {
		list = append(list, fmt.Sprintf("%-12s %s", c.title, c.about))
	}
	return append(list, "",
		"Added up, P99 and PEAK are those of the target where they are highest:",
		"they add up to nothing. A - is not known, or there is none.")
}
