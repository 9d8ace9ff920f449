package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Statuses is a set of HTTP statuses. The zero value is empty.
type Statuses [1000]bool

// ParseStatuses parses a list of statuses, classes and ranges, such as 429,5xx or 500-503. The empty string is the empty
// set.
func ParseStatuses(list string) (s Statuses, err error) {
	if strings.TrimSpace(list) == "" {
		return s, nil
	}
	var errs []error
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		from, to, ok := parseRange(part)
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not a status (429), a class (5xx) or a range (500-503)", part))
			continue
		}
		for i := from; i <= to; i++ {
			s[i] = true
		}
	}
	return s, errors.Join(errs...)
}

// parseRange reads a status, a class or a range.
func parseRange(s string) (from, to int, ok bool) {
	if len(s) == 3 && strings.EqualFold(s[1:], "xx") && '1' <= s[0] && s[0] <= '9' {
		from = int(s[0]-'0') * 100
		return from, from + 99, true
	}
	first, last, ranged := strings.Cut(s, "-")
	from, err := strconv.Atoi(first)
	if err != nil || len(first) != 3 {
		return 0, 0, false
	}
	to = from
	if ranged {
		if to, err = strconv.Atoi(last); err != nil || len(last) != 3 {
			return 0, 0, false
		}
	}
	return from, to, from >= 100 && to <= 999 && from <= to
}

// Has reports whether a status is in the set.
func (s *Statuses) Has(status int) bool { return status >= 0 && status < len(s) && s[status] }

// Common returns a status that is in both sets.
func (s *Statuses) Common(o *Statuses) (status int, ok bool) {
	for i := range s {
		if s[i] && o[i] {
			return i, true
		}
	}
	return 0, false
}
