package accesslog

import (
	"fmt"
	"testing"
	"time"
)

// When clocks are set back, an hour occurs twice. A local time in it is ambiguous, but the order of the lines shows
// which hour it belongs to, even if some lines are out of order by seconds. An earlier parser placed the whole second
// hour into the first one.
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
			if err := p.Parse(fmt.Appendf(nil, "%s 200", at.In(loc).Format("2006-01-02 15:04:05")), &r); err != nil ||
				!r.Time.Equal(at) {
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

// Lines in the hour that occurs twice are counted as ambiguous. If the log has a gap before them, the time nearer to
// the previous line is a guess.
func TestHourThatComesTwiceIsCounted(t *testing.T) {
	f, err := Apache("%{%Y-%m-%d %H:%M:%S}t %>s")
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2025, 10, 26, 0, 0, 0, 0, time.UTC) // 02:00, for the first time
	p := f.NewParser(loc)
	for at := -60; at < 180; at++ {
		line := first.Add(time.Duration(at) * time.Minute).In(loc).Format("2006-01-02 15:04:05")
		if err := p.Parse(fmt.Appendf(nil, "%s 200", line), new(Record)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Ambiguous(); got != 120 {
		t.Errorf("%d lines could be of either hour, want 120", got)
	}
}
