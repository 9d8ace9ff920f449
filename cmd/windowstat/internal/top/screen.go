package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// The styles of the screen. A terminal without colors ignores the colors.
var (
	plain    = tcell.StyleDefault
	bold     = plain.Bold(true)
	faint    = plain.Dim(true)
	heading  = plain.Reverse(true)
	problem  = plain.Foreground(tcell.ColorRed).Bold(true)
	notice   = plain.Foreground(tcell.ColorYellow).Bold(true)
	refused  = plain.Foreground(tcell.ColorYellow)
	failed   = plain.Foreground(tcell.ColorRed)
	measured = plain.Foreground(tcell.ColorGreen)
)

// span is a part of a line of the screen: cleaned text with a style.
type span struct {
	text  string
	style tcell.Style
}

// lines returns lines with the same style.
func lines(style tcell.Style, texts ...string) (list [][]span) {
	for _, text := range texts {
		list = append(list, []span{{text, style}})
	}
	return list
}

// draw draws the whole screen: failures, the title, the trouble, then the help, the seconds of the selected line or the
// table, and finally the keys. It computes all lines for each frame, and the library sends only changed cells to the
// terminal. All text is cleaned, because a name of a resource must neither move the cursor nor be wider than its
// computed width.
//
// The lines of a frame, from top to bottom:
//
//	FAILING 5s app:9719: connection refused        failures of targets
//	2 targets, added up  12:00:07  3 resources     title
//	GET /pay … since 12:00:01 …                     trouble of the service
//	RESOURCE        PASS/s BLOCK/s …  LAST 20 s    help, seconds of a line, or table
//	q quit  ? help …                               keys, or the filter
func (u *ui) draw(s tcell.Screen, now time.Time) {
	s.Clear()
	width, height := s.Size()
	height = max(height-1, 0) // without the line of keys
	x := u.table()
	var screen [][]span
	_, last := latest(u.targets)
	for _, t := range u.targets {
		if text := t.trouble(last, u.past, now); text != "" {
			screen = append(screen, lines(problem, wrapped(text, width)...)...)
		}
	}
	screen = append(screen, u.title(&x))
	screen = append(screen, u.alarms(width)...)
	switch rest := height - len(screen); {
	case u.help:
		screen = append(screen, lines(plain, helpLines()...)...)
	case u.opened:
		screen = append(screen, u.seconds(width, rest)...)
	default:
		screen = append(screen, u.rows(s, &x, width, rest)...)
	}
	// Fill the frame with empty lines, or cut it: the line of keys is always the last line of the terminal.
	screen = append(screen, make([][]span, height)...)[:height]
	screen = append(screen, u.foot())
	for y, line := range screen {
		x := 0
		for _, part := range line {
			text := fit(part.text, width-x)
			s.PutStrStyled(x, y, text, part.style)
			x += uniseg.StringWidth(text)
		}
		if s.HideCursor(); u.typing {
			s.ShowCursor(x, y)
		}
	}
	s.Show()
}

// alarms describes the current trouble of the targets. It returns nothing while the screen shows a past second.
func (u *ui) alarms(width int) (list [][]span) {
	if u.past > 0 || u.help {
		return nil
	}
	for _, t := range u.targets {
		for i, text := range t.currentAlarm().lines() {
			if i > 0 {
				list = append(list, lines(failed, text)...) // a long line is cut
				continue
			}
			if len(u.targets) > 1 {
				text = t.name + ": " + text
			}
			list = append(list, lines(failed.Bold(true), wrapped(text, width)...)...)
		}
	}
	return list
}

// currentAlarm returns the trouble of the target. The trouble is empty while the target does not respond.
func (t *target) currentAlarm() *alarm {
	if !t.away.IsZero() {
		return new(alarm)
	}
	return &t.state.detail.Alarm
}

// troubled reports whether the resource of a line is in trouble now.
func (u *ui) troubled(l *line) bool {
	inTrouble := func(t *target) bool { return l.name != inbound && t.currentAlarm().names(l.name) }
	return u.past == 0 && slices.ContainsFunc(l.scope, inTrouble)
}

// title describes the table: the target, the second and the number of resources.
func (u *ui) title(x *table) []span {
	name := u.targets[0].endpoint.String()
	if n := len(u.targets); n > 1 {
		name = fmt.Sprintf("%d targets, %s", n, map[bool]string{false: "added up", true: "apart"}[u.apart])
	}
	line := []span{{name, bold}}
	if at := u.now(); u.past > 0 {
		last, _ := latest(u.targets)
		line = append(line, span{fmt.Sprintf("  PAST %s, %d s back, End: now", clock(at), max(last-at, 0)), notice})
	} else if at > 0 {
		line = append(line, span{"  " + clock(at), plain})
	}
	count := fmt.Sprintf("  %d resource%s", len(x.lines), map[bool]string{false: "s"}[len(x.lines) == 1])
	if u.filter != "" {
		count += fmt.Sprintf(" with %q", clean(u.filter))
	}
	line = append(line, span{count, plain})
	if len(x.lines) > 0 && len(x.totals) == 0 {
		line = append(line, span{"  nothing is inbound", notice})
	}
	if len(u.targets) > 1 && !u.apart {
		line = append(line, span{"  P99, PEAK: the highest", plain})
	}
	return line
}

// clock formats a second in the time zone of the terminal.
func clock(unix int64) string { return time.Unix(unix, 0).Format(time.TimeOnly) }

// foot returns the last line: the keys, or the filter while the user types it.
func (u *ui) foot() []span {
	if u.typing {
		return []span{{"filter: " + clean(u.filter), bold}}
	}
	return []span{{"q quit  ? help  / filter  ←→ sort  ↑↓ select  enter seconds  esc back  [ ] past", faint}}
}

// Minimum widths of names and graphs. A narrower graph is omitted.
const (
	leastName  = 10
	leastGraph = 8
)

// rows returns the heading, the totals, and as many resources as fit.
//
// Columns of numbers have fixed widths. Names have the width of the longest name; the graph has the rest, at most a
// minute. If both do not fit, names are cut to 20 characters at least. If the graph still has fewer than eight seconds,
// it is omitted, and the names use its width. A line that is still too long is cut at the edge of the screen.
func (u *ui) rows(s tcell.Screen, x *table, width, height int) [][]span {
	// The widest name decides, of all lines and not only of the lines on the screen, so scrolling does not move
	// columns.
	names, targets := leastName, 0
	for _, l := range x.lines {
		names = max(names, uniseg.StringWidth(l.shown))
	}
	for _, t := range u.targets {
		if u.apart { // names of targets are not cut
			targets = max(targets, 1+uniseg.StringWidth(t.name))
		}
	}
	rest := width
	for _, c := range columns {
		rest -= c.width
	}
	name := min(
		names+targets,
		max(rest-1-leastGraph, 2*leastName+targets),
	) // longer names are cut before the graph is omitted
	bars, title := min(rest-name-1, minute), ""
	if bars < leastGraph {
		name, bars = max(rest, leastName), 0
	} else {
		title = fmt.Sprintf(" LAST %d s", bars)
	}
	list := [][]span{u.heading(columns[0].title, name, title, width)}
	height--
	u.height = max(height-len(x.totals), 0) // only resources scroll, not the totals
	at := u.position(x.lines)
	// Scroll as little as possible: move the first line only if the selected line is outside of the screen.
	if u.offset = min(max(u.offset, at-u.height+1), max(at, 0)); at < 0 {
		u.offset = 0
	}
	u.offset = max(min(u.offset, len(x.lines)-u.height), 0)
	shown := x.lines[u.offset:min(u.offset+u.height, len(x.lines))]
	// The full slice expression makes append copy the totals, so the shown lines do not overwrite x.totals.
	for i, l := range append(x.totals[:len(x.totals):len(x.totals)], shown...) {
		style := plain.Reverse(l.key == u.selected.key)
		if i < len(x.totals) {
			style = bold
		} else if u.troubled(&l) {
			style = failed.Reverse(l.key == u.selected.key)
		}
		text := pad(l.shown, name)
		if u.apart {
			text = pad(l.shown, name-targets) + " " + pad(l.target, targets-1)
		}
		list = append(
			list,
			append(
				u.numbers(text, &l, style),
				span{" " + graph(l.passes(bars), s.CharacterSet() == "UTF-8"), measured.Dim(u.away())},
			),
		)
	}
	if len(x.lines) == 0 && u.now() > 0 {
		list = append(
			list,
			lines(faint, "no resources", "esc shows those without the filter")[:1+min(len(u.filter), 1)]...)
	}
	return list
}

// heading returns a full line with the titles of the columns. The column of names has the width name, and its title is
// names. The heading marks the sort column, except above seconds, which are not sorted.
func (u *ui) heading(names string, name int, graph string, width int) []span {
	line := []span{{pad(names, name), heading}}
	for _, c := range columns[1:] {
		line = append(line, span{fmt.Sprintf("%*s", c.width, c.title), heading})
		width -= c.width
	}
	if !u.opened {
		line[u.order.column].style = heading.Bold(true).Underline(true)
	}
	return append(line, span{pad(graph, width-name), heading})
}

// numbers returns a name with the numbers of a second, dimmed while no target responds.
func (u *ui) numbers(name string, l *line, style tcell.Style) []span {
	style = style.Dim(u.away())
	line := []span{{name, style}}
	for _, c := range columns[1:] {
		x, of := c.value(l), style
		if x > 0 && !u.away() {
			of = cmp.Or(c.style, style)
		}
		line = append(line, span{fmt.Sprintf("%*s", c.width, c.show(x)), of})
	}
	return line
}

// seconds returns the details of the selected line, and its seconds, the newest first.
func (u *ui) seconds(width, height int) [][]span {
	l := newLine(u.selected.key, u.selected.scope, u.now())
	list := lines(bold, strings.TrimSpace(l.shown+"  "+l.target))
	list = append(list, lines(plain, describe(l.scope, l.name)...)...)
	list = append(list, u.heading("SECOND", leastName, "", width))
	// Fill the rest of the screen, with "-" for seconds before the history.
	for ; len(list) < height; l = newLine(l.key, l.scope, l.unix-1) {
		list = append(list, u.numbers(pad(clock(l.unix), leastName), &l, plain))
	}
	return list
}

// pad cuts or fills a cleaned text to a width.
func pad(s string, width int) string {
	s = fit(s, width)
	return s + strings.Repeat(" ", max(width-uniseg.StringWidth(s), 0))
}

// wrapped splits cleaned text into lines of a width. It keeps the end, which is the most specific part of an error.
func wrapped(text string, width int) (list []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && uniseg.StringWidth(line+" "+word) > width {
			list, line = append(list, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(list, line)
}

// maxMarks is the maximum number of combining characters after a character. More of them would overlap the lines above
// and below.
const maxMarks = 2

// clean escapes untrusted text for a terminal, as in a Go string: control characters, escape sequences, and invisible
// and directional characters. If several characters join into one, it escapes all but the first one and combining
// marks, because terminals disagree about the width of the result. Different texts remain different.
func clean(s string) string {
	var b strings.Builder
	for state := -1; s != ""; {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		place := 0
		for i, r := range cluster {
			mark := unicode.Is(unicode.M, r) && !unicode.Is(unicode.Variation_Selector, r)
			switch {
			case mark != (place > 0), place > maxMarks, !unicode.IsPrint(r), r == utf8.RuneError, r == '\\':
				_, size := utf8.DecodeRuneInString(cluster[i:])
				quoted := strconv.QuoteToASCII(cluster[i : i+size])
				b.WriteString(quoted[1 : len(quoted)-1])
			default:
				b.WriteRune(r)
			}
			place++
		}
	}
	return b.String()
}

// fit cuts a cleaned text to a width, and marks the cut with "…".
func fit(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	// Cut between grapheme clusters, never inside one: half a cluster may have another width.
	end, used := 0, 0
	for g := uniseg.NewGraphemes(s); width > 0 && g.Next(); _, end = g.Positions() {
		if used += g.Width(); used >= width { // leave a cell for the "…"
			return s[:end] + "…"
		}
	}
	return ""
}
