package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// draw draws everything.
func (u *ui) draw(s tcell.Screen, now time.Time) {
	c := newCanvas(s)
	s.Clear()
	s.HideCursor()
	y := u.drawTitle(c, now)
	bottom := c.height
	if c.height >= 5 {
		bottom--
		u.drawKeys(c, bottom)
	}
	if l, there := u.current(); u.help {
		c.lines(y, bottom, plain, helpLines()...)
	} else if there && u.opened {
		u.drawSeconds(c, y, bottom, &l)
	} else {
		u.drawTable(c, y, bottom)
	}
	s.Show()
}

// drawTitle draws the first lines, and returns the next line.
func (u *ui) drawTitle(c *canvas, now time.Time) int {
	y := 0
	if status := u.status(now); status != "" {
		c.text(0, y, c.width, status, alarm)
		if y++; c.height < 6 {
			return y
		}
	}
	name := u.targets[0].reader.endpoint.String()
	if n := len(u.targets); n > 1 {
		name = fmt.Sprintf("%d targets, %s", n, map[bool]string{false: "added up", true: "apart"}[u.apart])
	}
	x := c.text(0, y, c.width, name, bold)
	if at := u.now(); u.past > 0 {
		last, _ := latest(u.targets)
		x = c.text(x, y, c.width, fmt.Sprintf("  PAST %s, %d s back, End: now", clock(at), max(last-at, 0)), notice)
	} else if at > 0 {
		x = c.text(x, y, c.width, "  "+clock(at), plain)
	}
	n, with := u.count()
	count := fmt.Sprintf("  %d resources", n)
	if n == 1 {
		count = "  1 resource"
	}
	if u.filter != "" {
		count += fmt.Sprintf(", %d with %q", with, clean(u.filter))
	}
	x = c.text(x, y, c.width, count, plain)
	if n > 0 && len(totals(u.targets, u.now(), false)) == 0 {
		x = c.text(x, y, c.width, "  nothing is inbound", notice)
	}
	if len(u.targets) > 1 && !u.apart {
		c.text(x, y, c.width, "  P99, PEAK: the highest", plain)
	}
	return y + 1
}

func clock(unix int64) string { return time.Unix(unix, 0).Format(time.TimeOnly) }

func (u *ui) drawKeys(c *canvas, y int) {
	switch {
	case u.help:
		c.text(0, y, c.width, "any key: back", faint)
	case u.typing:
		x := c.text(0, y, c.width-1, "filter: "+clean(u.filter), bold)
		c.ShowCursor(x, y)
	case u.opened:
		c.text(0, y, c.width, "q quit  ? help  esc back  ↑↓ other resource  [ ] past  space stay", faint)
	default:
		c.text(0, y, c.width, "q quit  ? help  / filter  ←→ sort  ↑↓ select  enter seconds  [ ] past", faint)
	}
}

// drawHeading draws the titles of the columns.
func (u *ui) drawHeading(c *canvas, y int, first string) {
	c.text(0, y, c.width, fmt.Sprintf("%*s", c.width, ""), heading)
	style := func(column int) tcell.Style {
		if u.order.column == column && !u.opened {
			return sorted
		}
		return heading
	}
	c.text(0, y, c.name, first, style(0))
	for i := 1; i <= c.numbers; i++ {
		c.right(i, y, columns[i].title, style(i))
	}
	if c.graph > 0 {
		c.text(c.ends[c.numbers]+1, y, c.graph, fmt.Sprintf("LAST %d s", c.graph), heading)
	}
}

// drawTable draws the totals and all resources.
func (u *ui) drawTable(c *canvas, y, bottom int) {
	list := u.lines()
	widest := len(kindInbound)
	for i := range list {
		widest = max(widest, uniseg.StringWidth(list[i].shown))
	}
	if u.apart {
		widest += 1 + u.widestTarget()
	}
	c.divide(widest, u.apart)
	if bottom-y > 2 {
		u.drawHeading(c, y, columns[0].title)
		y++
	}
	for _, l := range totals(u.targets, u.now(), u.apart) {
		if bottom-y > 2 {
			u.drawLine(c, y, &l, bold)
			y++
		}
	}
	u.height = max(bottom-y, 0)
	if at := u.position(list); at >= 0 {
		u.offset = min(max(u.offset, at-u.height+1), at)
	} else {
		u.offset = 0
	}
	u.offset = max(min(u.offset, len(list)-u.height), 0)
	for i := u.offset; i < len(list) && y < bottom; i, y = i+1, y+1 {
		style := plain
		if list[i].key() == u.selected {
			style = style.Reverse(true)
		}
		u.drawLine(c, y, &list[i], style)
	}
	if len(list) == 0 {
		c.lines(y, bottom, faint, wrapped(u.nothing(), c.width)...)
	}
}

// label is the name of a line on the screen, in some width: that of a target is whole.
func (u *ui) label(l *line, width int) string {
	if !u.apart {
		return l.shown
	}
	width -= u.widestTarget() + 1
	name := fit(l.shown, width)
	return name + strings.Repeat(" ", max(width-uniseg.StringWidth(name), 0)+1) + l.target
}

func (u *ui) widestTarget() (width int) {
	for _, t := range u.targets {
		width = max(width, uniseg.StringWidth(t.name))
	}
	return width
}

// nothing returns why there are no lines.
func (u *ui) nothing() string {
	var errs []error
	rows, answered := 0, false
	for _, t := range u.targets {
		errs, rows, answered = append(errs, t.state.err), rows+len(t.rows), answered || t.newest > 0
	}
	switch err := errors.Join(errs...); {
	case u.filter != "" && rows > 0:
		return "no resource has this in its name; esc shows all"
	case answered:
		return "nothing was counted in the minute before"
	case err == nil:
		return "waiting for the first answer"
	default:
		return err.Error() // the first line of the screen may have no room for all of it
	}
}

// drawSeconds draws the seconds of a resource up to the one that is shown, the newest first.
func (u *ui) drawSeconds(c *canvas, y, bottom int, l *line) {
	y = c.lines(y, bottom, bold, strings.TrimSpace(l.shown+"  "+l.target))
	if u.detail.of == l.key() && bottom-y > 5 {
		y = c.lines(y, bottom, plain, u.detail.lines()...)
	}
	c.divide(leastName, false)
	c.graph = 0
	if bottom-y > 2 {
		u.drawHeading(c, y, "SECOND")
		y++
	}
	for unix := u.now(); y < bottom && unix > u.now()-maxKept; unix, y = unix-1, y+1 {
		s, stale := l.at(unix)
		u.drawNumbers(c, y, clock(unix), &s, plain, stale || u.old(l))
	}
}

// old reports whether no target of a line answers any more.
func (u *ui) old(l *line) bool {
	return u.past == 0 && !slices.ContainsFunc(l.parts, func(p part) bool { return p.away.IsZero() })
}

// drawLine draws a line of the table.
func (u *ui) drawLine(c *canvas, y int, l *line, style tcell.Style) {
	stale := l.stale || u.old(l)
	u.drawNumbers(c, y, u.label(l, c.name), &l.second, style, stale)
	if c.graph == 0 {
		return
	}
	style = measured
	if stale {
		style = faint
	}
	x := c.ends[c.numbers] + 1
	for i, step := range graph(l.passes(u.now(), c.graph), c.steps) {
		c.Put(x+i, y, string(step), style)
	}
}

// drawNumbers draws a name and the numbers of a second.
func (u *ui) drawNumbers(c *canvas, y int, name string, s *second, style tcell.Style, stale bool) {
	if stale {
		style = style.Dim(true)
	}
	c.text(0, y, c.name, fmt.Sprintf("%*s", c.name, ""), style)
	c.text(0, y, c.name, name, style)
	for i := 1; i <= c.numbers; i++ {
		v := columns[i].value(s)
		style := style
		switch {
		case stale || !(v > 0):
		case columns[i].name == "block":
			style = refused
		case columns[i].name == "exception":
			style = failed
		}
		c.right(i, y, columns[i].show(v), style)
	}
}
