package wallclock

import (
	"fmt"
	"testing"
	"time"
)

// Names of zones are checked.
func TestZones(t *testing.T) {
	for name, want := range map[string]string{
		"local": "Local", "UTC": "UTC", "z": "UTC", "Asia/Kolkata": "Asia/Kolkata",
	} {
		if zone, err := Zone(name); err != nil || zone.String() != want {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}
	for _, name := range []string{"", "Mars", "../etc/passwd", "+02:00"} {
		if zone, err := Zone(name); err == nil {
			t.Errorf("%q: %v", name, zone)
		}
	}
}

// Clocks show most times once, a time in the hour before they are set back twice, and a skipped time never.
func TestTimes(t *testing.T) {
	for _, tc := range []struct{ zone, wall, want string }{
		{"Europe/Berlin", "2025-07-01 02:30:00", "[2025-07-01 00:30:00 +0000 UTC]"},
		{"Europe/Berlin", "2025-10-26 02:30:00", "[2025-10-26 00:30:00 +0000 UTC 2025-10-26 01:30:00 +0000 UTC]"},
		{"Europe/Berlin", "2025-03-30 02:30:00", "[]"},
		{"Europe/Berlin", "2025-03-30 03:00:00", "[2025-03-30 01:00:00 +0000 UTC]"},
		// Set back by half an hour.
		{"Australia/Lord_Howe", "2025-04-06 01:45:00", "[2025-04-05 14:45:00 +0000 UTC 2025-04-05 15:15:00 +0000 UTC]"},
		// A skipped day.
		{"Pacific/Apia", "2011-12-30 12:00:00", "[]"},
	} {
		zone, err := Zone(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := time.Parse(time.DateTime, tc.wall)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(Times(wall, zone)); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.zone, tc.wall, got, tc.want)
		}
	}
}
