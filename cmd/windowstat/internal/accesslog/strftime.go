package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// An item is a part of a time: the letter of a strftime conversion, or one of those below.
type item struct {
	kind byte
	unit int    // of an epoch, and of a fraction
	text string // of a literal
}

// The items that are not letters of strftime.
const (
	itemLiteral  byte = iota
	itemCLF           // 17/May/2015:10:05:03 +0000
	itemISO           // 2015-05-17T10:05:03+00:00
	itemEpoch         // units since 1970, with or without a fraction
	itemCount         // a whole number of units since 1970
	itemFraction      // milliseconds or microseconds within the second
)

// strftimeLetters are the conversions that are supported: those of a date and a time of day that can be read back.
const strftimeLetters = "YmbdHMSzsFT%"

// strftimeComposed are the conversions that stand for several.
var strftimeComposed = map[byte]string{'F': "%Y-%m-%d", 'T': "%H:%M:%S"}

// strftime compiles a pattern.
func strftime(pattern string) ([]item, error) {
	switch pattern { // these have faster readers
	case "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%T %z":
		return []item{{kind: itemCLF}}, nil
	case "%Y-%m-%dT%H:%M:%S%z", "%FT%T%z", "%Y-%m-%dT%T%z":
		return []item{{kind: itemISO}}, nil
	}
	var items []item
	literal := func(text string) {
		if n := len(items); n > 0 && items[n-1].kind == itemLiteral {
			items[n-1].text += text
		} else {
			items = append(items, item{kind: itemLiteral, text: text})
		}
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			literal(pattern[i : i+1])
			continue
		}
		i++
		if i == len(pattern) || strings.IndexByte(strftimeLetters, pattern[i]) < 0 {
			return nil, fmt.Errorf("the time pattern %q has a conversion that cannot be read, %q; allowed are %%%s",
				pattern, pattern[i-1:min(i+1, len(pattern))], strings.Join(strings.Split(strftimeLetters, ""), " %"))
		}
		switch c := pattern[i]; c {
		case '%':
			literal("%")
		case 's':
			items = append(items, item{kind: itemCount, unit: seconds})
		case 'F', 'T':
			inner, _ := strftime(strftimeComposed[c])
			items = append(items, inner...)
		default:
			items = append(items, item{kind: c})
		}
	}
	return items, nil
}

// whole reports whether the item is a whole time.
func (i *item) whole() bool { return i.kind >= itemCLF && i.kind <= itemCount }

// lacks returns what a time made of these items lacks, "" if nothing.
func lacks(items []item) string {
	has := func(kinds ...byte) bool {
		return slices.ContainsFunc(items, func(i item) bool { return slices.Contains(kinds, i.kind) })
	}
	switch {
	case has(itemCLF, itemISO, itemEpoch, itemCount):
		return ""
	case !has('Y') || !has('m', 'b') || !has('d'):
		return "date"
	case !has('H') || !has('M') || !has('S'):
		return "time of day to the second"
	}
	return ""
}
