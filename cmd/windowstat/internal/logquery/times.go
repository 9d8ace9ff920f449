package logquery

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
)

// TimeHelp is what a time may look like.
const TimeHelp = "now, -15m, -1d12h, 03:04, 03:04:05, today, yesterday, 2026-01-02, 2026-01-02 03:04:05, 2026-01-02T03:04:05Z, " +
	"Unix seconds or milliseconds, or in --to +5m, which is counted from --from"

// ends are the first and the last second that a text can mean: those of a day, and where a clock was set back and shows a time twice.
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

// parseTime reads a time, see [TimeHelp], to the second. What begins with + is counted from a time, if that is not zero.
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
	// Days are those of clocks, of 23 to 25 hours; hours are always as long.
	if m := distance.FindStringSubmatch(s); m != nil && len(s) > 1 {
		days, _ := strconv.Atoi(m[2]) // 0 if there are none
		rest, err := time.ParseDuration("0s" + m[3])
		switch {
		case err != nil:
			return ends{}, fmt.Errorf("%q is not a time away, such as -90s, -15m or -1d12h", s)
		case m[1] == "-":
			return at(addDays(now, -days, zone).Add(-rest))
		case from.IsZero():
			return ends{}, fmt.Errorf("%q is counted from --from, and only in --to", s)
		}
		return at(addDays(from, days, zone).Add(rest))
	}
	// So many digits are no other time.
	if unixTime.MatchString(s) {
		n, _ := strconv.ParseInt(s, 10, 64)
		const milliseconds = 100_000_000_000 // these, since 1973
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
	return ends{}, fmt.Errorf("%q is no time; these are: %s", s, TimeHelp)
}

// inZone is when clocks in a zone show what one in UTC shows at wall.
func inZone(wall time.Time, zone *time.Location) (ends, error) {
	found := wallclock.Times(wall.Truncate(time.Second), zone)
	if len(found) == 0 {
		return ends{}, fmt.Errorf("clocks in %s were set forward over %s", zone, wall.Format(time.DateTime))
	}
	return ends{found[0], found[len(found)-1]}, nil
}

// addDays is the same time of another day on clocks in a zone.
func addDays(t time.Time, days int, zone *time.Location) time.Time {
	if days == 0 {
		return t // AddDate may return the other time that clocks show alike
	}
	return t.In(zone).AddDate(0, 0, days)
}

// dayOf is a day in a zone, whatever clocks did in it.
func dayOf(y int, m time.Month, d int, zone *time.Location) ends {
	return ends{dayStart(y, m, d, zone), dayStart(y, m, d+1, zone).Add(-time.Second)}
}

// dayStart is the first second of a day in a zone: midnight, or where clocks are set forward over it.
func dayStart(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if e, err := inZone(midnight, zone); err == nil {
		return e.first
	}
	_, offset := midnight.Add(-24 * time.Hour).In(zone).Zone()
	return midnight.Add(-time.Duration(offset) * time.Second)
}
