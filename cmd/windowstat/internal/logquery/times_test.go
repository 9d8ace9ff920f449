package logquery

import (
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 20, 22, 30, 15, 900e6, time.UTC) // the 21st in Berlin
	for _, tc := range []struct {
		text, first, last string // an empty last equals first
	}{
		{"now", "2026-10-20T22:30:15Z", ""},
		{"-15m", "2026-10-20T22:15:15Z", ""},
		{"-90s", "2026-10-20T22:28:45Z", ""},
		{"-1d", "2026-10-19T22:30:15Z", ""},
		{"-1d12h", "2026-10-19T10:30:15Z", ""},
		{"03:04", "2026-10-21T01:04:00Z", ""},
		{"03:04:05", "2026-10-21T01:04:05Z", ""},
		{"2026-01-02", "2026-01-01T23:00:00Z", "2026-01-02T22:59:59Z"},
		{"2026-01-02 03:04", "2026-01-02T02:04:00Z", ""},
		{"2026-01-02 03:04:05", "2026-01-02T02:04:05Z", ""},
		{"2026-07-02T03:04:05", "2026-07-02T01:04:05Z", ""},
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", ""},
		{"2026-01-02T03:04:05.999+05:30", "2026-01-01T21:34:05Z", ""},
		{"2026-01-02 03:04:05-08:00", "2026-01-02T11:04:05Z", ""},
		{"1767323045", "2026-01-02T03:04:05Z", ""},
		{"1767323045999", "2026-01-02T03:04:05Z", ""},
		// Clocks in Berlin show this time twice.
		{"2026-10-25 02:30", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"2026-10-25 01:59:59", "2026-10-24T23:59:59Z", ""},
		{"2026-10-25 03:00", "2026-10-25T02:00:00Z", ""},
		{"2026-03-29 01:59:59", "2026-03-29T00:59:59Z", ""},
		{"2026-03-29 03:00", "2026-03-29T01:00:00Z", ""},
	} {
		got, err := parseTime(tc.text, now, time.Time{}, berlin)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if tc.last == "" {
			tc.last = tc.first
		}
		first, last := got.first.UTC().Format(time.RFC3339Nano), got.last.UTC().Format(time.RFC3339Nano)
		if first != tc.first ||
			last != tc.last {
			t.Errorf("%s: %s and %s, want %s and %s", tc.text, first, last, tc.first, tc.last)
		}
	}
	for text, part := range map[string]string{
		"2026-03-29 02:30":    "2026-03-29 02:30:00 does not exist: clocks in Europe/Berlin were set forward",
		"":                    "is not a time",
		"tomorrow":            "is not a time",
		"-":                   "is not a time",
		"-15":                 "is not a relative time",
		"-m":                  "is not a time",
		"+15m":                "is relative to --from",
		"15m":                 "is not a time",
		"1767":                "is not a time",
		"24:00":               "is not a time",
		"03:04:60":            "is not a time",
		"2026-02-30 00:00:00": "is not a time",
		"17673230450000000":   "is not a time",
	} {
		if got, err := parseTime(text, now, time.Time{}, berlin); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, part)
		}
	}
}

// Days are days of the calendar, also if clocks change. Relative times of hours and minutes are in real time.
func TestTimesAroundChangesOfClocks(t *testing.T) {
	for _, tc := range []struct {
		// Now, from and the results are in UTC; from may be empty; an empty last equals first.
		zone, now, from, text, first, last string
	}{
		{"America/New_York", "2026-03-09 12:00", "", "today", "2026-03-09 04:00:00", "2026-03-10 03:59:59"},
		// 23 hours.
		{"America/New_York", "2026-03-09 12:00", "", "yesterday", "2026-03-08 05:00:00", "2026-03-09 03:59:59"},
		// It is the 8th there.
		{"America/New_York", "2026-03-09 03:30", "", "today", "2026-03-08 05:00:00", "2026-03-09 03:59:59"},
		// 25 hours.
		{"America/New_York", "2026-11-02 12:00", "", "yesterday", "2026-11-01 04:00:00", "2026-11-02 04:59:59"},
		{"America/New_York", "2026-03-01 12:00", "", "yesterday", "2026-02-28 05:00:00", "2026-03-01 04:59:59"},
		{"America/New_York", "2026-11-02 12:00", "", "2026-11-01", "2026-11-01 04:00:00", "2026-11-02 04:59:59"},
		{"America/New_York", "2026-03-09 12:00", "", "-1d", "2026-03-08 12:00:00", ""},
		{"America/New_York", "2026-03-08 12:00", "", "-1d", "2026-03-07 13:00:00", ""},   // 08:00 on both
		{"America/New_York", "2026-11-01 13:00", "", "-1d1h", "2026-10-31 11:00:00", ""}, // 08:00, less one hour
		{"America/New_York", "2026-03-09 06:30", "", "-1d", "2026-03-08 06:30:00", ""},   // clocks did not show 02:30
		{"Europe/Berlin", "2026-10-25 00:30", "", "-15m", "2026-10-25 00:15:00", ""},     // the first 02:30
		{"Europe/Berlin", "2026-10-25 01:30", "", "-15m", "2026-10-25 01:15:00", ""},     // the second
		{"Europe/Berlin", "2026-10-25 01:30", "", "-0d15m", "2026-10-25 01:15:00", ""},
		{"Europe/Berlin", "2026-10-25 11:00", "", "-1d", "2026-10-24 10:00:00", ""},
		{"Europe/Berlin", "2026-03-29 12:00", "", "today", "2026-03-28 23:00:00", "2026-03-29 21:59:59"},
		{"Europe/Berlin", "2026-10-25 12:00", "2026-10-25 00:58", "+5m", "2026-10-25 01:03:00", ""},
		{"Europe/Berlin", "2026-10-25 12:00", "2026-10-24 10:00", "+1d", "2026-10-25 11:00:00", ""},
		{"Europe/Berlin", "2026-10-25 12:00", "2026-10-24 10:00", "+24h", "2026-10-25 10:00:00", ""},
		{"Europe/Berlin", "2026-10-25 12:00", "2026-10-24 10:00", "+1d30s", "2026-10-25 11:00:30", ""},
		// Has no midnight.
		{"Africa/Cairo", "2026-04-25 12:00", "", "2026-04-24", "2026-04-23 22:00:00", "2026-04-24 20:59:59"},
		// Has midnight twice.
		{"America/Havana", "2026-11-02 12:00", "", "yesterday", "2026-11-01 04:00:00", "2026-11-02 04:59:59"},
		{"UTC", "2026-01-01 00:00", "", "yesterday", "2025-12-31 00:00:00", "2025-12-31 23:59:59"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		at := func(text string) time.Time {
			u, _ := time.Parse("2006-01-02 15:04", text) // the zero Time for an empty text
			return u
		}
		got, err := parseTime(tc.text, at(tc.now), at(tc.from), zone)
		if tc.last == "" {
			tc.last = tc.first
		}
		if first, last := got.first.UTC().Format(time.DateTime), got.last.UTC().Format(time.DateTime); err != nil ||
			first != tc.first ||
			last != tc.last {
			t.Errorf("%s at %s in %s: %s to %s, want %s to %s: %v", tc.text, tc.now, tc.zone, first, last, tc.first,
				tc.last, err)
		}
	}
}

// Steps begin at midnight, and no step continues after the next midnight.
func TestSteps(t *testing.T) {
	for _, tc := range []struct {
		zone, second string // in UTC
		step         time.Duration
		begin, end   string
	}{
		{"UTC", "2026-01-02 03:04:05", time.Minute, "2026-01-02 03:04:00", "2026-01-02 03:05:00"},
		{"UTC", "2026-01-02 03:04:00", time.Second, "2026-01-02 03:04:00", "2026-01-02 03:04:01"},
		{"UTC", "2026-01-02 23:59:59", 7 * time.Hour, "2026-01-02 21:00:00", "2026-01-03 00:00:00"},
		{"Asia/Kolkata", "2026-01-02 03:04:05", time.Hour, "2026-01-02 02:30:00", "2026-01-02 03:30:00"},
		// The first 02:30.
		{"Europe/Berlin", "2026-10-25 00:30:00", time.Hour, "2026-10-25 00:00:00", "2026-10-25 01:00:00"},
		{"Europe/Berlin", "2026-10-25 01:30:00", time.Hour, "2026-10-25 01:00:00", "2026-10-25 02:00:00"}, // the second
		{"Europe/Berlin", "2026-10-25 22:30:00", 24 * time.Hour, "2026-10-24 22:00:00", "2026-10-25 23:00:00"},
		{"Europe/Berlin", "2026-03-29 21:30:00", 24 * time.Hour, "2026-03-28 23:00:00", "2026-03-29 22:00:00"},
		{"Europe/Berlin", "2026-03-29 21:30:00", 12 * time.Hour, "2026-03-29 11:00:00", "2026-03-29 22:00:00"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		second, err := time.Parse(time.DateTime, tc.second)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := stepOf(second, tc.step, zone)
		if b, e := begin.UTC().Format(time.DateTime), end.UTC().Format(time.DateTime); b != tc.begin || e != tc.end {
			t.Errorf("%s of %s in %s: %s to %s, want %s to %s", tc.step, tc.second, tc.zone, b, e, tc.begin, tc.end)
		}
	}
}
