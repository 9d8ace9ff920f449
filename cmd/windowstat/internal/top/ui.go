package top

import (
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
)

// ui is what the user sees and has chosen. One goroutine uses it.
type ui struct {
	endpoint string
	board    *board
	order    order
	filter   string
	typing   bool
	selected string // name of a resource; empty if none
	opened   string // name of the resource whose seconds are shown; empty if it is the table
	paused   bool

	state     answer    // the last answer, without its samples
	away      time.Time // since when requests fail; zero if they succeed
	restarted time.Time // when a restart was seen
	offset    int       // the first line of the table on the screen
	height    int       // how many lines there were, the last time
}

// take shows an answer.
func (u *ui) take(a answer, now time.Time) {
	switch {
	case a.err == nil:
		u.away = time.Time{}
		if u.board.add(a.samples, a.newest); u.board.rows[u.opened] == nil {
			u.opened = "" // it is gone
		}
	case u.away.IsZero():
		u.away = now
	}
	if a.restarted {
		u.restarted = now
	}
	a.samples = nil
	u.state = a
}

// maxFilter is how long a filter may be.
const maxFilter = 100

// key handles a key, and reports whether it quits.
func (u *ui) key(k *tcell.EventKey) (quit bool) {
	if k.Key() == tcell.KeyCtrlC {
		return true
	}
	if u.typing {
		u.typed(k)
		return false
	}
	switch k.Key() {
	case tcell.KeyEscape:
		switch {
		case u.opened != "":
			u.opened = ""
		case u.selected != "":
			u.selected = ""
		default:
			u.filter = ""
		}
	case tcell.KeyEnter:
		if u.opened != "" {
			u.opened = ""
		} else {
			if u.selected == "" {
				u.move(0)
			}
			u.opened = u.selected
		}
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
		u.move(maxResources)
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
	case r == '/':
		u.typing, u.opened = true, ""
	case r == ' ':
		u.paused = !u.paused
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

// sortBy sorts by a column, or reverses the order if that is the column already.
func (u *ui) sortBy(column int) {
	if u.order.column == column {
		u.order.reverse = !u.order.reverse
		return
	}
	u.order = order{column: column}
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

// move moves the selection by some lines; without a selection it starts above the first line.
func (u *ui) move(lines int) {
	table := u.board.table(u.order, u.filter)
	if len(table) == 0 {
		return
	}
	at := min(max(u.position(table)+lines, 0), len(table)-1)
	u.selected = table[at].row.name
	if u.opened != "" {
		u.opened = u.selected
	}
}

// position returns the line of the selected resource, -1 if there is none.
func (u *ui) position(table []line) int {
	for i := range table {
		if u.selected != "" && table[i].row.name == u.selected {
			return i
		}
	}
	return -1
}

// status returns what the user should know, and whether it is an error.
func (u *ui) status(now time.Time) (text string, bad bool) {
	since := func(t time.Time) string { return now.Sub(t).Round(time.Second).String() }
	var parts []string
	if u.state.err != nil {
		text := "AWAY " + since(u.away)
		if u.board.newest == 0 {
			text = "NO SECONDS"
		}
		parts, bad = append(parts, text+": "+strings.ReplaceAll(u.state.err.Error(), "\n", "; ")), true
	}
	if u.paused {
		parts = append(parts, "PAUSED")
	}
	if !u.restarted.IsZero() && now.Sub(u.restarted) < time.Minute {
		parts = append(parts, "RESTARTED "+since(u.restarted)+" ago")
	}
	if u.board.left > 0 {
		parts = append(parts, "TOO MANY RESOURCES: some are left out")
	}
	return strings.Join(parts, "  "), bad
}
