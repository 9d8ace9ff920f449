package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// The least widths of names and graphs. A narrower graph is left out.
const (
	leastName  = 10
	leastGraph = 8
)

// The styles of the screen. A terminal without colours shows them without colours.
var (
	plain    = tcell.StyleDefault
	bold     = plain.Bold(true)
	faint    = plain.Dim(true)
	heading  = plain.Reverse(true)
	sorted   = heading.Bold(true).Underline(true)
	alarm    = plain.Foreground(tcell.ColorRed).Bold(true)
	notice   = plain.Foreground(tcell.ColorYellow).Bold(true)
	refused  = plain.Foreground(tcell.ColorYellow)
	failed   = plain.Foreground(tcell.ColorRed)
	measured = plain.Foreground(tcell.ColorGreen)
)

// canvas is a screen and its layout.
type canvas struct {
	tcell.Screen
	width, height int
	steps         []rune // of graphs
	name          int    // width of the first column
	numbers       int    // how many columns of numbers there are
	ends          []int  // where each column ends
	graph         int    // width of the graph, 0 if there is none
}

func newCanvas(s tcell.Screen) *canvas {
	c := &canvas{Screen: s, steps: bars}
	c.width, c.height = s.Size()
	if s.CharacterSet() != "UTF-8" {
		c.steps = plainBars
	}
	return c
}

// divide divides the width, for names of a width.
func (c *canvas) divide(names int) {
	rest := c.width - columns[1].width
	for c.numbers = 1; c.numbers+1 < len(columns) && rest-columns[c.numbers+1].width >= leastName; c.numbers++ {
		rest -= columns[c.numbers+1].width
	}
	c.name, c.graph = max(min(names, rest), leastName), 0
	if rest > 2*leastName+leastGraph { // long names give way to the graph
		c.name = min(c.name, rest-1-leastGraph)
		c.graph = min(rest-c.name-1, minute)
	} else if c.graph = rest - c.name - 1; c.graph < leastGraph {
		c.name, c.graph = rest, 0
	}
	c.ends = append(c.ends[:0], c.name)
	for i := 1; i <= c.numbers; i++ {
		c.ends = append(c.ends, c.ends[i-1]+columns[i].width)
	}
}

// text writes cleaned text, cut to a width, and returns where it ends.
func (c *canvas) text(x, y, width int, s string, style tcell.Style) int {
	for s = fit(s, min(width, c.width-x)); s != ""; {
		var w int
		if s, w = c.Put(x, y, s, style); w == 0 {
			break
		}
		x += w
	}
	return x
}

// right writes a text that ends where a column ends.
func (c *canvas) right(column, y int, s string, style tcell.Style) {
	width := columns[column].width - 1
	s = fit(s, width)
	c.text(c.ends[column]-uniseg.StringWidth(s), y, width, s, style)
}

// draw draws everything.
func (u *ui) draw(s tcell.Screen, now time.Time) {
	c := newCanvas(s)
	s.Clear()
	s.HideCursor()
	y := u.drawTitle(c, now)
	bottom := c.height
	if c.height >= 5 {
		bottom--
		u.drawHelp(c, bottom)
	}
	if r := u.board.rows[u.opened]; r != nil {
		u.drawSeconds(c, y, bottom, r)
	} else {
		u.drawTable(c, y, bottom)
	}
	s.Show()
}

// drawTitle draws the first lines, and returns the next line.
func (u *ui) drawTitle(c *canvas, now time.Time) int {
	y := 0
	if status, bad := u.status(now); status != "" {
		style := notice
		if bad {
			style = alarm
		}
		c.text(0, y, c.width, status, style)
		if y++; c.height < 6 {
			return y
		}
	}
	x := c.text(0, y, c.width, u.endpoint, bold)
	if u.board.newest > 0 {
		x = c.text(x, y, c.width, "  "+time.Unix(u.board.newest, 0).Format(time.TimeOnly), plain)
	}
	n := len(u.board.rows)
	count := fmt.Sprintf("  %d resources", n)
	if n == 1 {
		count = "  1 resource"
	}
	if u.filter != "" {
		count += fmt.Sprintf(", %d with %q", len(u.board.table(u.order, u.filter)), clean(u.filter))
	}
	x = c.text(x, y, c.width, count, plain)
	if n > 0 && u.board.inbound == nil {
		c.text(x, y, c.width, "  sum: nested calls count again", notice)
	}
	return y + 1
}

const help = "q quit  / filter  ←→ sort  r reverse  ↑↓ select  enter seconds  space pause"

func (u *ui) drawHelp(c *canvas, y int) {
	switch {
	case u.typing:
		x := c.text(0, y, c.width-1, "filter: "+clean(u.filter), bold)
		c.ShowCursor(x, y)
	case u.opened != "":
		c.text(0, y, c.width, "q quit  esc back  ↑↓ other resource  space pause", faint)
	default:
		c.text(0, y, c.width, help, faint)
	}
}

// drawHeading draws the titles of the columns.
func (u *ui) drawHeading(c *canvas, y int, first string) {
	c.text(0, y, c.width, fmt.Sprintf("%*s", c.width, ""), heading)
	style := func(column int) tcell.Style {
		if u.order.column == column && u.opened == "" {
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

// drawTable draws the total and all resources.
func (u *ui) drawTable(c *canvas, y, bottom int) {
	table := u.board.table(u.order, u.filter)
	widest := 0
	for i := range table {
		widest = max(widest, uniseg.StringWidth(table[i].row.shown))
	}
	c.divide(widest)
	if bottom-y > 2 {
		u.drawHeading(c, y, columns[0].title)
		y++
	}
	if bottom-y > 3 && u.board.newest > 0 {
		l := u.board.total()
		stale := l.stale || u.state.err != nil
		u.drawLine(c, y, l.row.shown, &l.second, bold, stale)
		u.drawGraph(c, y, l.row, stale)
		y++
	}
	u.height = max(bottom-y, 0)
	if at := u.position(table); at >= 0 {
		u.offset = min(max(u.offset, at-u.height+1), at)
	} else {
		u.offset = 0
	}
	u.offset = max(min(u.offset, len(table)-u.height), 0)
	for i := u.offset; i < len(table) && y < bottom; i, y = i+1, y+1 {
		l := &table[i]
		style, stale := plain, l.stale || u.state.err != nil
		if l.row.name == u.selected {
			style = style.Reverse(true)
		}
		u.drawLine(c, y, l.row.shown, &l.second, style, stale)
		u.drawGraph(c, y, l.row, stale)
	}
	if len(table) == 0 {
		for _, s := range strings.Split(u.nothing(), "\n") {
			if y < bottom {
				c.text(0, y, c.width, s, faint)
				y++
			}
		}
	}
}

// nothing returns why there are no lines.
func (u *ui) nothing() string {
	switch {
	case u.filter != "" && len(u.board.rows) > 0:
		return "no resource has this in its name; esc shows all"
	case u.board.newest > 0:
		return "nothing was counted in the last minute"
	case u.state.err == nil:
		return "waiting for the first answer"
	}
	return u.state.err.Error() // the first line of the screen may have no room for all of it
}

// drawSeconds draws the seconds of one resource, the newest first.
func (u *ui) drawSeconds(c *canvas, y, bottom int, r *row) {
	c.text(0, y, c.width, r.shown, bold)
	y++
	c.divide(leastName)
	c.graph = 0
	if bottom-y > 2 {
		u.drawHeading(c, y, "SECOND")
		y++
	}
	stale := u.state.err != nil || r.last < u.board.newest
	for unix := u.board.newest; unix > u.board.newest-minute && y < bottom; unix, y = unix-1, y+1 {
		s := r.at(unix)
		u.drawLine(c, y, time.Unix(unix, 0).Format(time.TimeOnly), &s, plain, stale)
	}
}

// drawLine draws a name and the numbers of a second.
func (u *ui) drawLine(c *canvas, y int, name string, s *second, style tcell.Style, stale bool) {
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
		c.right(i, y, columns[i].show(s), style)
	}
}

// drawGraph draws the passes of the last seconds.
func (u *ui) drawGraph(c *canvas, y int, r *row, stale bool) {
	if c.graph == 0 {
		return
	}
	style := measured
	if stale {
		style = faint
	}
	x := c.ends[c.numbers] + 1
	for i, step := range graph(r.history(u.board.newest, c.graph), c.steps) {
		c.Put(x+i, y, string(step), style)
	}
}
