package top

import (
	"fmt"
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
			case r == '\\':
				b.WriteString(`\\`)
			case mark != (place > 0), place > maxMarks, !unicode.IsPrint(r), r == utf8.RuneError:
				escape(&b, cluster[i:])
			default:
				b.WriteRune(r)
			}
			place++
		}
	}
	return b.String()
}

// escape writes the first character of a text, escaped as in a Go string.
func escape(b *strings.Builder, s string) {
	switch r, size := utf8.DecodeRuneInString(s); {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < utf8.RuneSelf || r == utf8.RuneError && size == 1:
		fmt.Fprintf(b, `\x%02x`, s[0])
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// fit cuts a cleaned text to a width, and marks the cut with "…".
func fit(s string, width int) string {
	if width < 1 {
		return ""
	}
	used, end, state := 0, 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width {
			return s[:end] + "…"
		}
		if used += w; used < width { // there is room for the "…"
			end += len(cluster)
		}
	}
	return s
}
