package top

import (
	"slices"
	"strings"
	"time"

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
	selected key
	opened   bool  // the seconds of what is selected are shown, and not the table
	past     int64 // the second that is shown; 0 if it is the last one

	detail detail // of what is opened
	offset int    // the first line of the table on the screen
	height int    // how many lines there were, the last time
}

// key is what is selected: a resource, of a target if they are apart. The zero value is nothing.
type key struct{ name, target string }

func (l *line) key() key { return key{l.name, l.target} }

// now returns the second that is shown, 0 if there is none.
func (u *ui) now() int64 {
	now, _ := latest(u.targets)
	if u.past > 0 {
		return u.past
	}
	return now
}

// take shows an answer.
func (u *ui) take(t *target, a answer, now time.Time) {
	t.take(a, now)
	if _, there := u.current(); !there {
		u.opened = false // it is gone
	}
}

// step moves by some seconds through what is kept.
func (u *ui) step(seconds int64) {
	last, _ := latest(u.targets)
	first := last
	for _, t := range u.targets {
		for unix := range t.known {
			first = min(first, unix)
		}
	}
	if u.past = max(u.now()+seconds, first); u.past >= last {
		u.past = 0
	}
}

// lines returns the table.
func (u *ui) lines() []line { return table(u.targets, u.now(), u.apart, u.order, u.filter) }

// count returns how many resources there are, and how many with the filter. Several targets may have the same.
func (u *ui) count() (all, with int) {
	now, filter, known := u.now(), strings.ToLower(u.filter), map[string]bool{}
	for _, t := range u.targets {
		for name, r := range t.rows {
			if known[name] || !r.recent(now) {
				continue
			}
			known[name] = true
			if r.has(filter) {
				with++
			}
		}
	}
	return len(known), with
}

// current returns the line that is selected, of all that there are.
func (u *ui) current() (line, bool) {
	var parts []part
	for _, t := range u.targets {
		if r := t.rows[u.selected.name]; r != nil && r.recent(u.now()) && (!u.apart || t.name == u.selected.target) {
			parts = append(parts, part{t, r})
		}
	}
	if len(parts) == 0 {
		return line{}, false
	}
	return of(u.now(), u.apart, parts...), true
}

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

// separate has targets be shown apart, or added up.
func (u *ui) separate() {
	if len(u.targets) == 1 {
		return
	}
	u.apart, u.selected.target = !u.apart, ""
	for _, t := range u.targets {
		if r := t.rows[u.selected.name]; u.apart && r != nil && r.recent(u.now()) {
			u.selected.target = t.name
			break
		}
	}
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
func (u *ui) move(by int) {
	list := u.lines()
	if len(list) == 0 {
		return
	}
	at := min(max(u.position(list)+by, 0), len(list)-1)
	u.selected = list[at].key()
}

// position returns the line that is selected, -1 if there is none.
func (u *ui) position(list []line) int {
	if u.selected == (key{}) {
		return -1
	}
	return slices.IndexFunc(list, func(l line) bool { return l.key() == u.selected })
}

// status returns what the user should know, and whether it is an error.
func (u *ui) status(now time.Time) (text string, bad bool) {
	var wrong, others []string
	of := func(t *target) string {
		if len(u.targets) == 1 {
			return ""
		}
		return " " + t.name
	}
	_, last := latest(u.targets)
	for _, t := range u.targets {
		is, other := t.trouble(last, now)
		if is != "" && t.state.err != nil {
			wrong = append(wrong, is+of(t)+": "+strings.ReplaceAll(t.state.err.Error(), "\n", "; "))
		} else if is != "" {
			wrong = append(wrong, is+of(t))
		}
		if u.past > 0 && t.newest > 0 && !t.has(u.past) {
			wrong = append(wrong, "NOT KNOWN OF THIS SECOND"+of(t))
		}
		if other != "" {
			others = append(others, strings.TrimSpace(other)+of(t))
		}
	}
	return strings.Join(append(wrong, others...), "  "), len(wrong) > 0
}
