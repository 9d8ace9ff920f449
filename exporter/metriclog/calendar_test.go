package metriclog_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Each second is in the file of its local day, whatever the clocks do there, and the first second of a day is the first
// one of the new file's index. Sentinel counts days with an offset that it found when it began, and indexes the first
// second of a day in yesterday's file.
func TestCalendar(t *testing.T) {
	for _, tc := range []struct {
		zone  string
		utc   string // the moment at which something happens
		dates string // of the files before and after
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
		{"America/Havana", "2026-11-01 05:00:00", "2026-11-01"},      // 1:00 becomes midnight, again
		{"Australia/Lord_Howe", "2026-04-04 15:00:00", "2026-04-05"}, // half an hour back, at 2:00
		{"Australia/Lord_Howe", "2026-04-05 13:30:00", "2026-04-05 2026-04-06"},
		{"Australia/Lord_Howe", "2026-10-03 15:30:00", "2026-10-04"},
		{"Australia/Lord_Howe", "2026-10-04 13:00:00", "2026-10-04 2026-10-05"},
		{"Africa/Casablanca", "2026-02-15 02:00:00", "2026-02-15"}, // Ramadan
		{"Africa/Casablanca", "2026-02-16 00:00:00", "2026-02-15 2026-02-16"},
		{"Africa/Casablanca", "2026-03-22 23:00:00", "2026-03-22 2026-03-23"},
		{"Pacific/Apia", "2011-12-30 10:00:00", "2011-12-29 2011-12-31"}, // there was no 30th
	} {
		loc, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		moment, err := time.Parse(time.DateTime, tc.utc)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, moment.Add(-3*time.Second), metriclog.Options{Location: loc})
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
					t.Errorf(
						"%s, %s: %s begins with %d at %d in the index",
						tc.zone,
						tc.utc,
						name,
						seconds[0]-moment.Unix(),
						offsets[0],
					)
				}
				if text := row.Start.In(loc).Format(time.DateTime); strings.Split(line, "|")[1] != text ||
					!strings.HasPrefix(text, date) {
					t.Errorf("%s: %q is in %s, and should be %s", tc.zone, line, name, text)
				}
			}
		}
		if got := strings.Join(dates, " "); got != tc.dates || rows != 12 {
			t.Errorf("%s, %s: %d rows in files of %s, want %s", tc.zone, tc.utc, rows, got, tc.dates)
		}
		found, err := metriclog.Searcher{
			Dir: r.dir,
		}.Search(
			metriclog.Query{From: moment.Add(-time.Second), To: moment.Add(time.Second)},
		)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for row := range found.All() {
			got = append(got, row.Start.Unix()-moment.Unix())
		}
		if len(got) != 6 || got[0] != -1 || got[2] != 0 || got[5] != 1 {
			t.Errorf("%s, %s: found %v", tc.zone, tc.utc, got)
		}
		if r.checkIndexes(t) != 6 {
			t.Errorf("%s, %s: indexes", tc.zone, tc.utc)
		}
	}
}
