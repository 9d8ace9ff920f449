// Package wallclock has times as clocks of a time zone show them.
package wallclock

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // where the system has no time zones, as in small containers
)

// Zone returns the time zone of a name: local, UTC or z in any case, or one of the IANA database, such as Europe/Berlin.
func Zone(name string) (*time.Location, error) {
	switch strings.ToLower(name) {
	case "local":
		return time.Local, nil
	case "utc", "z":
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("%q is no time zone; local, UTC and names such as Europe/Berlin are allowed", name)
	}
	return zone, nil
}

// Times returns when clocks in a zone show what one in UTC shows at wall, ascending: never, if they are set forward over it, and
// twice, if they are set back over it.
func Times(wall time.Time, zone *time.Location) (all []time.Time) {
	const far = 24 * time.Hour // before and behind any change of the offset
	for _, near := range []time.Duration{-far, far} {
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, own := at.In(zone).Zone(); own == offset && !slices.ContainsFunc(all, at.Equal) {
			all = append(all, at)
		}
	}
	return all
}
