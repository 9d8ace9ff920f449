package metriclog_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Each second is in the segment of its local day, also on days with a clock change. The first second of a day is the
// first record in the index of the new segment. Sentinel computes days with the UTC offset at its start, and indexes
// the first second of a day in the previous segment.
func TestCalendar(t *testing.T) {
	for _, tc := range []struct {
		zone  string
		utc   string // time of the change
		dates string // of the segments before and after the change
	}{
		{"UTC", "2026-05-06 00:00:00", "2026-05-05 2026-05-06"},
		{"UTC", "2026-05-01 00:00:00", "2026-04-30 2026-05-01"},
		{"UTC", "2027-01-01 00:00:00", "2026-12-31 2027-01-01"},
		{"UTC", "2028-02-29 00:00:00", "2028-02-28 2028-02-29"},
		{"UTC", "2028-03-01 00:00:00", "2028-02-29 2028-03-01"},
		{"Europe/Berlin", "2026-03-28 23:00:00", "2026-03-28 2026-03-29"},
		{"Europe/Berlin", "2026-03-29 01:00:00", "2026-03-29"}, // 2:00 becomes 3:00
		{"Europe/Berlin", "2026-03-29 22:00:00", "2026-03-29 2026-03-30"},
		{"Europe/Berlin", "2026-10-24 22:00:00", "2026-10-24 2026-10-25"},
		{"Europe/Berlin", "2026-10-25 01:00:00", "2026-10-25"}, // 3:00 becomes 2:00
		{"Europe/Berlin", "2026-10-25 23:00:00", "2026-10-25 2026-10-26"},
		{"America/Havana", "2026-03-08 05:00:00", "2026-03-07 2026-03-08"}, // midnight becomes 1:00
		{"America/Havana", "2026-11-01 04:00:00", "2026-10-31 2026-11-01"},
		{"America/Havana", "2026-11-01 05:00:00", "2026-11-01"},      // 1:00 becomes midnight
		{"Australia/Lord_Howe", "2026-04-04 15:00:00", "2026-04-05"}, // at 2:00, half an hour back
		{"Australia/Lord_Howe", "2026-04-05 13:30:00", "2026-04-05 2026-04-06"},
		{"Australia/Lord_Howe", "2026-10-03 15:30:00", "2026-10-04"},
		{"Australia/Lord_Howe", "2026-10-04 13:00:00", "2026-10-04 2026-10-05"},
		{"Africa/Casablanca", "2026-02-15 02:00:00", "2026-02-15"}, // start of Ramadan
		{"Africa/Casablanca", "2026-02-16 00:00:00", "2026-02-15 2026-02-16"},
		{"Africa/Casablanca", "2026-03-22 23:00:00", "2026-03-22 2026-03-23"},
		{"Pacific/Apia", "2011-12-30 10:00:00", "2011-12-29 2011-12-31"}, // December 30 was skipped
	} {
		loc, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		change, err := time.Parse(time.DateTime, tc.utc)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, change.Add(-3*time.Second), metriclog.Options{Location: loc})
		r.seconds(t, 6)
		rows := 0
		var dates []string
		for _, name := range r.files(t) {
			date, isData := strings.CutPrefix(name, "shop-metrics.log.")
			if strings.HasSuffix(name, ".idx") || !isData {
				continue
			}
			dates = append(dates, date)
			seconds, offsets := r.index(t, name)
			for i, line := range strings.Split(strings.TrimSuffix(r.read(t, name), "\n"), "\n") {
				row, err := metriclog.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				rows++
				if i == 0 && (seconds[0] != row.Start.Unix() || offsets[0] != 0) {
					t.Errorf("%s, %s: the index of %s begins with second %d at offset %d", tc.zone, tc.utc, name,
						seconds[0]-change.Unix(), offsets[0])
				}
				if text := row.Start.In(loc).Format(time.DateTime); strings.Split(line, "|")[1] != text ||
					!strings.HasPrefix(text, date) {
					t.Errorf("%s: %q is in %s, want date and time %s", tc.zone, line, name, text)
				}
			}
		}
		if got := strings.Join(dates, " "); got != tc.dates || rows != 12 {
			t.Errorf("%s, %s: %d rows in files of %s, want %s", tc.zone, tc.utc, rows, got, tc.dates)
		}
		q := metriclog.Query{From: change.Add(-time.Second), To: change.Add(time.Second)}
		found, err := metriclog.Searcher{Dir: r.dir}.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for row := range found.All() {
			got = append(got, row.Start.Unix()-change.Unix())
		}
		if len(got) != 6 || got[0] != -1 || got[2] != 0 || got[5] != 1 {
			t.Errorf("%s, %s: found %v", tc.zone, tc.utc, got)
		}
		if r.checkIndexes(t) != 6 {
			t.Errorf("%s, %s: invalid indexes", tc.zone, tc.utc)
		}
	}
}
