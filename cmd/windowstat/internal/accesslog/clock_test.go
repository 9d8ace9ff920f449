package accesslog

import (
	"fmt"
	"testing"
	"time"
)

// Of the hour that comes twice when clocks are set back, all of the second one was taken for the first. The order of the lines
// tells them apart, seconds out of order included.
func TestHourThatComesTwice(t *testing.T) {
	f, err := Apache("%{%Y-%m-%d %H:%M:%S}t %>s")
	if err != nil {
		t.Fatal(err)
	}
	for zone, begin := range map[string]time.Time{
		"Europe/Berlin":       time.Date(2025, 10, 25, 23, 30, 0, 0, time.UTC),
		"America/New_York":    time.Date(2025, 11, 2, 4, 30, 0, 0, time.UTC),
		"Australia/Lord_Howe": time.Date(2025, 4, 5, 14, 0, 0, 0, time.UTC),   // half an hour
		"Europe/Dublin":       time.Date(2025, 3, 29, 23, 30, 0, 0, time.UTC), // forward
	} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		p := f.NewParser(loc)
		wrong := 0
		for i := range 3 * 3600 {
			at := begin.Add(time.Duration(i+[]int{0, 7, -5}[i%3]) * time.Second)
			var r Record
			if err := p.Parse(fmt.Appendf(nil, "%s 200", at.In(loc).Format("2006-01-02 15:04:05")), &r); err != nil || !r.Time.Equal(at) {
				if wrong++; wrong == 1 {
					t.Errorf("%s: %v, want %v (%v)", zone, r.Time, at, err)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d lines of %d", zone, wrong, 3*3600)
		}
	}
}

// What order does not tell is counted, until it does.
func TestHourThatOrderDoesNotTell(t *testing.T) {
	f, err := Apache("%{%Y-%m-%d %H:%M:%S}t %>s")
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2025, 10, 26, 0, 0, 0, 0, time.UTC) // 02:00, for the first time
	for name, c := range map[string]struct {
		from, to []int // minutes after that, between which there is a line in each
		want     int64
	}{
		"through both":                {[]int{-60}, []int{180}, 0},
		"begins in the first":         {[]int{20}, []int{180}, 0},
		"begins in the second":        {[]int{80}, []int{180}, 40},
		"ends in the first":           {[]int{-60}, []int{30}, 0},
		"is only of the second":       {[]int{70}, []int{100}, 30},
		"is silent in the first":      {[]int{-10, 40}, []int{0, 180}, 0},
		"is silent until the second":  {[]int{-10, 100}, []int{0, 180}, 20},
		"is silent around the change": {[]int{-60, 80}, []int{50, 180}, 0},
	} {
		p := f.NewParser(loc)
		var r Record
		for i := range c.from {
			for at := c.from[i]; at < c.to[i]; at++ {
				line := first.Add(time.Duration(at) * time.Minute).In(loc).Format("2006-01-02 15:04:05")
				if err := p.Parse(fmt.Appendf(nil, "%s 200", line), &r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := p.Untold(); got != c.want {
			t.Errorf("a log that %s: %d lines, want %d", name, got, c.want)
		}
	}
}
