package logquery

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
)

// TimeHelp describes the syntax of a time, for --help and for errors.
const TimeHelp = "now, -15m, -1d12h, 03:04, 03:04:05, today, yesterday, 2026-01-02, " +
	"2026-01-02 03:04:05, 2026-01-02T03:04:05Z, Unix seconds or milliseconds, or in --to +5m, relative to --from"

// ends has the first and the last second that a text means. They differ for a day. They also differ for a time of day
// that clocks showed twice, because they were set back.
type ends struct{ first, last time.Time }

var (
	distance = regexp.MustCompile(`^([-+])(?:([0-9]{1,6})d)?((?:[0-9].*)?)$`)
	unixTime = regexp.MustCompile(`^[0-9]{9,15}$`)
)

// Layouts of times: with an offset, in the zone, and in the zone today.
var (
	offsetLayouts = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00"}
	zoneLayouts   = []string{"2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"}
	todayLayouts  = []string{time.TimeOnly, "15:04"}
)

// parseTime parses a time, see [TimeHelp], and truncates it to the second. A time that begins with + is relative to
// from, and an error if from is zero.
func parseTime(s string, now, from time.Time, zone *time.Location) (ends, error) {
	at := func(t time.Time) (ends, error) {
		t = t.Truncate(time.Second)
		return ends{t, t}, nil
	}
	y, month, d := now.In(zone).Date()
	switch s {
	case "now":
		return at(now)
	case "today":
		return dayOf(y, month, d, zone), nil
	case "yesterday":
		return dayOf(y, month, d-1, zone), nil
	}
	// A day is a day of the calendar, of 23 to 25 hours. An hour has 60 minutes.
	if m := distance.FindStringSubmatch(s); m != nil && len(s) > 1 {
		days, _ := strconv.Atoi(m[2]) // 0 without days
		rest, err := time.ParseDuration("0s" + m[3])
		switch {
		case err != nil:
			return ends{}, fmt.Errorf("%q is not a relative time, such as -90s, -15m or -1d12h", s)
		case m[1] == "-":
			return at(addDays(now, -days, zone).Add(-rest))
		// The text is in --from, so there is no earlier time to add the distance to.
		case from.IsZero():
			return ends{}, fmt.Errorf("%q is relative to --from, and only valid in --to", s)
		}
		return at(addDays(from, days, zone).Add(rest))
	}
	// No other time has 9 to 15 digits and nothing else.
	if unixTime.MatchString(s) {
		n, _ := strconv.ParseInt(s, 10, 64)
		const milliseconds = 100_000_000_000 // smaller numbers are seconds; as milliseconds they would be before 1973
		if n < milliseconds {
			return at(time.Unix(n, 0))
		}
		return at(time.UnixMilli(n))
	}
	for _, layout := range offsetLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return at(t)
		}
	}
	for _, layout := range zoneLayouts {
		if wall, err := time.Parse(layout, s); err == nil {
			return inZone(wall, zone)
		}
	}
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return dayOf(day.Year(), day.Month(), day.Day(), zone), nil
	}
	for _, layout := range todayLayouts {
		if wall, err := time.Parse(layout, s); err == nil {
			return inZone(time.Date(y, month, d, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC), zone)
		}
	}
	return ends{}, fmt.Errorf("%q is not a time; valid times are: %s", s, TimeHelp)
}

// inZone returns the times at which clocks in a zone show the date and time of wall.
func inZone(wall time.Time, zone *time.Location) (ends, error) {
	// A time of day occurs twice when clocks are set back, and never in the hour that they skip when set forward.
	found := wallclock.Times(wall.Truncate(time.Second), zone)
	if len(found) == 0 {
		return ends{}, fmt.Errorf("%s does not exist: clocks in %s were set forward over it",
			wall.Format(time.DateTime), zone)
	}
	return ends{found[0], found[len(found)-1]}, nil
}

// addDays returns the same time of another day on clocks in a zone.
func addDays(t time.Time, days int, zone *time.Location) time.Time {
	if days == 0 {
		return t // AddDate may return the other time that clocks show
	}
	return t.In(zone).AddDate(0, 0, days)
}

// dayOf returns the first and the last second of a day in a zone.
func dayOf(y int, m time.Month, d int, zone *time.Location) ends {
	return ends{dayStart(y, m, d, zone), dayStart(y, m, d+1, zone).Add(-time.Second)}
}

// dayStart returns the first second of a day in a zone. It is midnight, unless clocks were set forward over midnight.
func dayStart(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if e, err := inZone(midnight, zone); err == nil {
		return e.first
	}
	// Midnight does not exist on this day, because clocks skip it. The first second of the day is midnight in the
	// offset of the day before.
	_, offset := midnight.Add(-24 * time.Hour).In(zone).Zone()
	return midnight.Add(-time.Duration(offset) * time.Second)
}
