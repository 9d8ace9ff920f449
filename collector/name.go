package collector

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

const (
	// Other is the name for all names beyond a limit: of resources, origins, entrances, reasons.
	Other = "_other"
	// Unnamed is the resource for the empty name.
	Unnamed = "_unnamed"
	// Unspecified is the reason of a block for which none was given.
	Unspecified = "unspecified"
	// MaxNameLength is how long a resource's name may be, in bytes.
	MaxNameLength = 200
)

// CleanName returns the name under which a resource is kept: the name itself, if it is UTF-8 of 1 to [MaxNameLength]
// bytes. Each run of bytes that are not UTF-8 becomes one U+FFFD. A name that is too long is cut at a character, and ends
// in "~" and a hash of all of it, so that two names that begin alike stay apart. The empty name becomes [Unnamed]. The
// names of views, [Root] and [InboundTotal], get a "_" in front. All else, newlines and quotes included, is kept:
// exporters escape what their format needs. Origins, entrances and reasons are cleaned in the same way.
func CleanName(name string) string {
	if name == Root || name == InboundTotal {
		return "_" + name
	}
	return cleanName(name, Unnamed)
}

// cleanName is CleanName with a name for the empty name.
func cleanName(name, empty string) string {
	if name == "" {
		return empty
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
