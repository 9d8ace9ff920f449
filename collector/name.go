package collector

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

const (
	// Other is the resource for all names beyond the limit.
	Other = "_other"
	// Unnamed is the resource for the empty name.
	Unnamed = "_unnamed"
	// MaxNameLength is how long a resource's name may be, in bytes.
	MaxNameLength = 200
)

// CleanName returns the name under which a resource is kept: the name itself, if it is UTF-8 of 1 to [MaxNameLength]
// bytes. Each run of bytes that are not UTF-8 becomes one U+FFFD. A name that is too long is cut at a character, and ends in "~" and
// a hash of all of it, so that two names that begin alike stay apart. The empty name becomes [Unnamed]. All else,
// newlines and quotes included, is kept: exporters escape what their format needs.
func CleanName(name string) string {
	if name == "" {
		return Unnamed
	}
	clean := strings.ToValidUTF8(name, "\uFFFD")
	if len(clean) <= MaxNameLength {
		return clean
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	suffix := fmt.Sprintf("~%016x", hash.Sum64())
	end := MaxNameLength - len(suffix)
	for !utf8.RuneStart(clean[end]) {
		end--
	}
	return clean[:end] + suffix
}
