package top

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

func TestClean(t *testing.T) {
	for name, want := range map[string]string{
		"GET /users/{id}":     "GET /users/{id}",
		"日本 größe":            "日本 größe",
		"":                    "",
		"\x1b[2J\x1b]0;x\a":   `\x1b[2J\x1b]0;x\a`,
		"a\nb\tc\r":           `a\nb\tc\r`,
		"\u009b31m":           `\u009b31m`, // the escape sequence of one character
		"a\u202eb\u200bc":     `a\u202eb\u200bc`,
		"a\u00a0b\u3000c":     `a\u00a0b\u3000c`,
		`a\x1b`:               `a\\x1b`,
		"\xff\xfe":            `\xff\xfe`,
		"\ufffd":              `\ufffd`,
		"e\u0301":             "e\u0301",
		"\u0301x":             `\u0301x`,
		"e\u0301\u0302\u0303": "e\u0301\u0302" + `\u0303`,
		"❤\ufe0f":             `❤\ufe0f`,
		"👩\u200d👩":            `👩\u200d\U0001f469`,
		"\U000e0041":          `\U000e0041`,
	} {
		if got := clean(name); got != want {
			t.Errorf("%+q: got %+q, want %+q", name, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tc := range []struct {
		s     string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abcd", 1, "…"},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"日本語", 3, "日…"},
		{"日本語", 2, "…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"", 5, ""},
	} {
		if got := fit(tc.s, tc.width); got != tc.want {
			t.Errorf("%q in %d: got %q, want %q", tc.s, tc.width, got, tc.want)
		}
	}
}

// For any name, the cleaned text has only printable characters, the computed width, and differs from the text of any
// other name.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"a", "\x1b[31m", "e\u0301\u0301\u0301", "\u1100\u1100\u1100",
		"🇩🇪", "a\\b", "\xff", "👍🏽",
	} {
		f.Add(s, "x", 5)
	}
	f.Fuzz(func(t *testing.T, a, b string, width int) {
		x, y := clean(a), clean(b)
		if a != b && x == y {
			t.Errorf("%+q and %+q are both %+q", a, b, x)
		}
		if !utf8.ValidString(x) || len(x) > 4*len(a)+6*len([]rune(a)) {
			t.Errorf("%+q: %+q", a, x)
		}
		marks := maxMarks
		for _, r := range x {
			switch {
			case !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r):
				t.Errorf("%+q: %+q", a, x)
			case !unicode.Is(unicode.M, r):
				marks = 0
			default:
				if marks++; marks > maxMarks {
					t.Errorf("%+q: %d marks in %+q", a, marks, x)
				}
			}
		}
		short := fit(x, width)
		if w := uniseg.StringWidth(short); w > max(width, 0) ||
			short != x && !strings.HasSuffix(short, "…") && width > 0 {
			t.Errorf("%+q in %d: %+q is %d wide", x, width, short, w)
		}
	})
}
