package collector

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

const (
	// Other replaces the name of a new resource, origin, entrance or reason if the table of such names is full.
	Other = "_other"
	// Unnamed is the resource of calls with the empty name.
	Unnamed = "_unnamed"
	// Unspecified is the reason of a block without a reason, and the class of an exception without a class.
	Unspecified = "unspecified"
	// MaxNameLength is the maximum length of a resource's name in bytes.
	MaxNameLength = 200
)

// CleanName converts name to a valid name of a resource. If name is valid UTF-8 of 1 to [MaxNameLength] bytes, and
// neither [Root] nor [InboundTotal], CleanName returns it unchanged. Otherwise:
//
//   - Each sequence of invalid bytes becomes one U+FFFD.
//   - If the name is then longer than MaxNameLength bytes, it is cut between two characters, and gets "~" and a hash of
//     the original name at its end. Two long names with the same beginning therefore remain different.
//   - The empty name becomes [Unnamed].
//   - Root and InboundTotal get the prefix "_", because they are the names of Views of the whole process.
//
// All other bytes are kept, including newlines and quotes: exporters escape these bytes as their formats require. The
// names of origins, entrances and reasons are cleaned in the same way, with two exceptions. They may be equal to Root
// or InboundTotal. If they are empty, an origin stays empty, an entrance becomes [DefaultEntrance], and a reason
// becomes [Unspecified].
//
//	""               _unnamed
//	"machine-root"   _machine-root
//	"a\xff\xfeb"     a, one U+FFFD, b
//	300 letters a    183 letters a, "~" and 16 hexadecimal digits: 200 bytes
func CleanName(name string) string {
	if name == Root || name == InboundTotal {
		return "_" + name
	}
	return cleanName(name, Unnamed)
}

// cleanName is like CleanName, but for names of origins, entrances and reasons. It replaces an empty name by the
// parameter empty, and does not change [Root] and [InboundTotal].
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
