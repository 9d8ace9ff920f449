package top

import (
	"strings"

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

// divide divides the width, for names of a width; whole ones take the place of the graph.
func (c *canvas) divide(names int, whole bool) {
	rest := c.width - columns[1].width
	for c.numbers = 1; c.numbers+1 < len(columns) && rest-columns[c.numbers+1].width >= leastName; c.numbers++ {
		rest -= columns[c.numbers+1].width
	}
	c.name, c.graph = max(min(names, rest), leastName), 0
	if !whole && rest > 2*leastName+leastGraph { // long names give way to the graph
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

// lines writes lines, and returns the next line.
func (c *canvas) lines(y, bottom int, style tcell.Style, list ...string) int {
	for _, s := range list {
		if y < bottom {
			c.text(0, y, c.width, s, style)
			y++
		}
	}
	return y
}

// wrapped divides a cleaned text into lines of a width.
func wrapped(s string, width int) (list []string) {
	for part := range strings.SplitSeq(s, "\n") {
		now := ""
		for word := range strings.FieldsSeq(part) {
			if now != "" && uniseg.StringWidth(now)+1+uniseg.StringWidth(word) > width {
				list, now = append(list, now), ""
			}
			now = strings.TrimLeft(now+" "+word, " ")
		}
		list = append(list, now)
	}
	return list
}
