package main

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
		text, first, last string // last is empty if it is first
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
		// Clocks in Berlin show this twice.
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
		if first, last := got.first.UTC().Format(time.RFC3339Nano), got.last.UTC().Format(time.RFC3339Nano); first != tc.first || last != tc.last {
			t.Errorf("%s: %s and %s, want %s and %s", tc.text, first, last, tc.first, tc.last)
		}
	}
	for text, part := range map[string]string{
		"2026-03-29 02:30":    "set forward over 2026-03-29 02:30:00",
		"":                    "is no time",
		"tomorrow":            "is no time",
		"-":                   "is no time",
		"-15":                 "is not a time away",
		"-m":                  "is no time",
		"+15m":                "is counted from --from",
		"15m":                 "is no time",
		"1767":                "is no time",
		"24:00":               "is no time",
		"03:04:60":            "is no time",
		"2026-02-30 00:00:00": "is no time",
		"17673230450000000":   "is no time",
	} {
		if got, err := parseTime(text, now, time.Time{}, berlin); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, part)
		}
	}
}

func TestZones(t *testing.T) {
	for name, want := range map[string]string{"local": "Local", "UTC": "UTC", "z": "UTC", "Asia/Kolkata": "Asia/Kolkata"} {
		if zone, err := parseZone(name); err != nil || zone.String() != want {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}
	for _, name := range []string{"", "Mars", "../etc/passwd", "+02:00"} {
		if zone, err := parseZone(name); err == nil {
			t.Errorf("%q: %v", name, zone)
		}
	}
}
