package top

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
)

// ui is what the user sees and has chosen. One goroutine uses it.
type ui struct {
	targets  []*target
	apart    bool // a line for each target, and not added up
	order    order
	filter   string
	typing   bool
	help     bool
	selected line  // the zero value is nothing
	opened   bool  // the seconds of what is selected are shown, and not the table
	past     int64 // the second that is shown; 0 if it is the last one
	quit     bool

	offset int // the first line of the table on the screen
	height int // how many lines there were, the last time
}

// now returns the second that is shown, 0 if there is none.
func (u *ui) now() int64 {
	now, _ := latest(u.targets)
	if u.past > 0 {
		return u.past
	}
	return now
}

// table is the table of the second that is shown. It is made anew for each frame and each key: nothing of it can be out of date.
func (u *ui) table() table { return newTable(u.targets, u.now(), u.apart, u.order, u.filter) }

// away reports whether no target answers, so that the present is not known.
func (u *ui) away() bool {
	return u.past == 0 && !slices.ContainsFunc(u.targets, func(t *target) bool { return t.away.IsZero() })
}

// step moves by some seconds through what may be kept.
func (u *ui) step(seconds int64) {
	last, _ := latest(u.targets)
	if u.past = max(u.now()+seconds, last-maxKept+1); u.past >= last {
		u.past = 0
	}
}

// separate shows targets apart, or added up. Lines are of one or of all of them, so nothing stays selected.
func (u *ui) separate() {
	u.apart, u.selected, u.opened = !u.apart && len(u.targets) > 1, line{}, false
}

// sortBy sorts by a column, or reverses the order if that is the column already.
func (u *ui) sortBy(column int) {
	column = (column + len(columns)) % len(columns)
	u.order = order{column, u.order.column == column && !u.order.reverse}
}

// move moves the selection by some lines; without a selection it starts above the first line. What is selected stays so when the order
// changes, and may be hidden by the filter.
func (u *ui) move(by int) {
	list := u.table().lines
	if len(list) > 0 {
		u.selected = list[min(max(u.position(list)+by, 0), len(list)-1)]
	}
}

// position returns the line that is selected, -1 if there is none.
func (u *ui) position(list []line) int {
	return slices.IndexFunc(list, func(l line) bool { return l.key == u.selected.key })
}

// key handles a key, and reports whether it quits. Help takes any key, and the filter all that is typed until enter or esc.
func (u *ui) key(k *tcell.EventKey) (quit bool) {
	name := tcell.KeyNames[k.Key()]
	if k.Key() == tcell.KeyRune {
		name = string(k.Rune())
	}
	// Help and the filter take keys before the table does, but Ctrl-C always quits.
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

// keys are what keys do in the table, by their names.
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
		u.filter += string(k.Rune())
	}
}

// help explains the keys, of which the last line of the screen has the most important.
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

// helpLines are what ? shows.
func helpLines() []string {
	list := strings.Split(help, "\n")
	for _, c := range columns {
		list = append(list, fmt.Sprintf("%-12s %s", c.title, c.about))
	}
	return list
}
