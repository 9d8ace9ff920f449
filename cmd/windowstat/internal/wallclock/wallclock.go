// Package wallclock converts between instants and the dates and times that clocks in a time zone show.
package wallclock

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for systems without time zones, such as small containers
)

// Zone returns the time zone with a name: local, UTC or z in any case, or a name of the IANA database, such as
// Europe/Berlin.
func Zone(name string) (*time.Location, error) {
	switch strings.ToLower(name) {
	case "local":
		return time.Local, nil
	case "utc", "z":
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("%q is not a time zone such as local, UTC or Europe/Berlin", name)
	}
	return zone, nil
}

// Times returns the instants at which clocks in zone show the date and time that a clock in UTC shows at wall, in
// ascending order. The result is empty if clocks are set forward over that time, and has two instants if they are set
// back over it.
//
// In Europe/Berlin, for example:
//
//	2026-03-29 02:30    no instant: clocks go from 02:00 to 03:00
//	2026-10-25 02:30    two instants: clocks go from 03:00 to 02:00
//	any other time      one instant
//
// The offsets a day before and a day after are the only candidates. A candidate counts if it is also the offset at the
// resulting instant.
func Times(wall time.Time, zone *time.Location) (all []time.Time) {
	const day = 24 * time.Hour // reaches beyond any change of the offset
	for _, shift := range []time.Duration{-day, day} {
		_, offset := wall.Add(shift).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, own := at.In(zone).Zone(); own == offset && !slices.ContainsFunc(all, at.Equal) {
			all = append(all, at)
		}
	}
	return all
}
