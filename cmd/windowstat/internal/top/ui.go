package top

import (
	"slices"
	"strings"
	"time"
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

// status returns what is wrong, empty if nothing is.
func (u *ui) status(now time.Time) string {
	var wrong []string
	of := func(t *target) string {
		if len(u.targets) == 1 {
			return ""
		}
		return " " + t.name
	}
	_, last := latest(u.targets)
	for _, t := range u.targets {
		is := t.trouble(last, now)
		if is != "" && t.state.err != nil {
			wrong = append(wrong, is+of(t)+": "+strings.ReplaceAll(t.state.err.Error(), "\n", "; "))
		} else if is != "" {
			wrong = append(wrong, is+of(t))
		}
		if u.past > 0 && t.newest > 0 && !t.has(u.past) {
			wrong = append(wrong, "NOT KNOWN OF THIS SECOND"+of(t))
		}
	}
	return strings.Join(wrong, "  ")
}
