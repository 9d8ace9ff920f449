package top

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxMarks is how many combining characters may follow a character: more would grow into the lines above and below.
const maxMarks = 2

// clean escapes untrusted text for a terminal, as in a Go string: control characters, escape sequences, invisible and
// directional characters, and all but the first of characters that join into one, unless they are combining marks, since
// terminals disagree on the width of the result. Different texts stay different.
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
	end, used := 0, 0
	for g := uniseg.NewGraphemes(s); width > 0 && g.Next(); _, end = g.Positions() {
		if used += g.Width(); used >= width { // or the "…" does not fit
			return s[:end] + "…"
		}
	}
	return ""
}
