package top

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
)

// ui is the state of the screen: the data of the targets, and the choices of the user. It is not safe for concurrent
// use.
//
// The data flow is one-way: keys change the fields of ui, draw computes a frame from them, and a frame changes only
// offset and height. A test can therefore press keys and compare frames without a terminal.
type ui struct {
	targets  []*target
	apart    bool // a line for each target instead of sums
	order    order
	filter   string
	typing   bool
	help     bool
	selected line  // zero without a selection
	opened   bool  // the screen shows the seconds of the selected line instead of the table
	past     int64 // the second on the screen; 0 for the last one
	quit     bool

	offset int // index of the first line on the screen
	height int // number of lines in the last frame
}

// now returns the second on the screen, or 0 before the first one.
//
// Without a choice of the user it is the newest second that all targets in time have, see [latest].
func (u *ui) now() int64 {
	now, _ := latest(u.targets)
	if u.past > 0 {
		return u.past
	}
	return now
}

// table returns the table of the second on the screen. Each frame and each key computes it from the seconds, so it is
// never out of date.
func (u *ui) table() table { return newTable(u.targets, u.now(), u.apart, u.order, u.filter) }

// away reports whether the screen shows the current second but no target responds.
func (u *ui) away() bool {
	return u.past == 0 && !slices.ContainsFunc(u.targets, func(t *target) bool { return t.away.IsZero() })
}

// step moves by a number of seconds within the kept history.
//
// A step to the newest second or beyond ends the view of the past: past becomes 0, and the screen follows the clock.
func (u *ui) step(seconds int64) {
	last, _ := latest(u.targets)
	if u.past = max(u.now()+seconds, last-maxKept+1); u.past >= last {
		u.past = 0
	}
}

// separate switches between a line for each target and their sums. The lines of the two tables differ, so it clears the
// selection.
func (u *ui) separate() {
	u.apart, u.selected, u.opened = !u.apart && len(u.targets) > 1, line{}, false
}

// sortBy sorts by a column. If the table is already sorted by it, sortBy reverses the order.
func (u *ui) sortBy(column int) {
	column = (column + len(columns)) % len(columns)
	u.order = order{column, u.order.column == column && !u.order.reverse}
}

// move moves the selection by a number of lines. Without a selection it starts above the first line. The selection
// follows its line when the order changes, and the filter may hide it.
func (u *ui) move(by int) {
	list := u.table().lines
	if len(list) > 0 {
		// Home and End pass half of the smallest and largest int, so adding the position does not overflow.
		u.selected = list[min(max(u.position(list)+by, 0), len(list)-1)]
	}
}

// position returns the index of the selected line, or -1.
func (u *ui) position(list []line) int {
	return slices.IndexFunc(list, func(l line) bool { return l.key == u.selected.key })
}

// key handles a key, and reports whether it quits. While the help is open, any key closes it. While the user types a
// filter, all keys belong to the filter until Enter or Esc.
func (u *ui) key(k *tcell.EventKey) (quit bool) {
	name := tcell.KeyNames[k.Key()]
	if k.Key() == tcell.KeyRune {
		name = string(k.Rune())
	}
	// Ctrl-C always quits.
	do, known := keys[name]
	switch {
	case k.Key() == tcell.KeyCtrlC:
		return true
	case u.help:
		u.help, u.quit = false, name == "q"
	case u.typing:
		u.typed(k)
	case known:
		do(u)
	case name >= "1" && name <= fmt.Sprint(len(columns)):
		u.sortBy(int(name[0] - '1'))
	}
	return u.quit
}

// keys maps the names of keys to their actions in the table.
//
// Runes are keyed by themselves, other keys by their names in tcell.KeyNames. Digits select columns; key handles them,
// because their number depends on columns. help and the documentation list the same keys.
var keys = map[string]func(u *ui){
	"q":     func(u *ui) { u.quit = true },
	"?":     func(u *ui) { u.help = true },
	"/":     func(u *ui) { u.typing, u.opened = true, false },
	"[":     func(u *ui) { u.step(-1) },
	"]":     func(u *ui) { u.step(1) },
	"{":     func(u *ui) { u.step(-10) },
	"}":     func(u *ui) { u.step(10) },
	"t":     (*ui).separate,
	"r":     func(u *ui) { u.order.reverse = !u.order.reverse },
	"Left":  func(u *ui) { u.sortBy(u.order.column - 1) },
	"Right": func(u *ui) { u.sortBy(u.order.column + 1) },
	"j":     func(u *ui) { u.move(1) },
	"Down":  func(u *ui) { u.move(1) },
	"k":     func(u *ui) { u.move(-1) },
	"Up":    func(u *ui) { u.move(-1) },
	"PgUp":  func(u *ui) { u.move(-max(u.height, 1)) },
	"PgDn":  func(u *ui) { u.move(max(u.height, 1)) },
	"Home":  func(u *ui) { u.move(math.MinInt / 2) },
	"End": func(u *ui) {
		if u.past == 0 {
			u.move(math.MaxInt / 2)
		}
		u.past = 0
	},
	" ": func(u *ui) {
		if u.past > 0 {
			u.past = 0
		} else {
			u.past = u.now()
		}
	},
	"Enter": func(u *ui) {
		if !u.opened && u.selected.name == "" {
			u.move(0)
		}
		u.opened = !u.opened && u.selected.name != ""
	},
	"Esc": func(u *ui) {
		if !u.opened {
			u.selected, u.filter = line{}, ""
		}
		u.opened = false
	},
}

// typed handles a key of the filter.
//
// The table changes with each character, so the user sees the matching resources while typing. The filter removes whole
// runes, never single bytes of one.
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
		u.filter += string(k.Rune())
	}
}

// help explains the keys. The last line of the screen has the most important ones.
const help = `q            quit
/            show resources with a text in their name; esc shows all
← →  1 to 8  sort by another column; the same again, or r, reverses
↑ ↓  j k     select; PgUp, PgDn, Home, End
enter        the seconds of what is selected, limits and calls by origin; esc
[ ]  { }     back and forth in time by a second, or ten; End returns to now
space        stay at this second; again, return to now
t            several targets: a line for each, or added up

Added up, P99 and PEAK are those of the target where they are highest:
they add up to nothing. A - is not known, or there is none.
`

// helpLines returns the lines of the help: the keys, then the columns.
func helpLines() []string {
	list := strings.Split(help, "\n")
	for _, c := range columns {
		list = append(list, fmt.Sprintf("%-12s %s", c.title, c.about))
	}
	return list
}
