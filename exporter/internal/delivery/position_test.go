package delivery

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// lineAt returns the line of a process with the given first second.
func lineAt(t *testing.T, first time.Time) *seconds.Line {
	t.Helper()
	c, err := collector.New(collector.Options{Now: func() time.Time { return first }})
	if err != nil {
		t.Fatal(err)
	}
	return seconds.NewLine(c)
}

// TestRestore has a case for each row of the package comment's table, and for the bounds between rows. All seconds are
// relative to the first one.
func TestRestore(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line, zero := lineAt(t, first), first.Unix()
	const oldest = -600
	for name, tc := range map[string]struct {
		next, unacked int64
		want          int64 // Next
		inDoubt       int64 // seconds in doubt
		lost          int64 // seconds that Expire skips once Next is in this process
	}{
		"before":                          {next: -20, want: -20},
		"before, in doubt":                {next: -20, unacked: -10, want: -20, inDoubt: 10},
		"before the oldest":               {next: -3000, want: oldest},
		"all in doubt before the oldest":  {next: -3000, unacked: -2000, want: oldest},
		"in doubt beyond the oldest":      {next: -3000, unacked: -590, want: oldest, inDoubt: 10},
		"at the first second":             {next: 0, want: 0},
		"in doubt up to the first second": {next: -5, unacked: 0, want: -5, inDoubt: 5},
		"ahead":                           {next: 30, want: 0, lost: 30},
		"in doubt ahead":                  {next: -5, unacked: 30, want: -5, inDoubt: 5, lost: 30},
		"ahead and in doubt":              {next: 10, unacked: 30, want: 0, lost: 30},
		"as far ahead as allowed":         {next: MaxAhead, want: 0, lost: MaxAhead},
	} {
		at := Position{Next: zero + tc.next}
		if tc.unacked != 0 || tc.inDoubt > 0 {
			at.UnackedTo = zero + tc.unacked
		}
		got, err := at.Restore(line, zero+oldest)
		if err != nil || got.Next != zero+tc.want || max(got.UnackedTo-got.Next, 0) != tc.inDoubt {
			t.Errorf("%s: %+v, %v; want next %d and %d in doubt", name, got, err, zero+tc.want, tc.inDoubt)
		}
		open := zero + 400
		end := got.End(line, open)
		if split := tc.want < 0 && tc.lost > 0; (end == zero) != split || !split && end != open {
			t.Errorf("%s: a response ends at %d of this process", name, end-zero)
		}
		if lost := got.Expire(line, zero+oldest); tc.want < 0 && lost != 0 {
			t.Errorf("%s: skipped %d seconds before the log was sent", name, lost)
		} else if tc.want < 0 {
			got.Settle(zero)
			if lost := got.Expire(line, zero+oldest); lost != tc.lost || got.Next != zero+tc.lost {
				t.Errorf("%s: skipped %d seconds after the log, want %d", name, lost, tc.lost)
			}
		} else if lost != tc.lost || got.Next != zero+tc.lost {
			t.Errorf("%s: skipped %d seconds, want %d", name, lost, tc.lost)
		}
	}
	for name, at := range map[string]Position{
		"zero":                      {},
		"negative":                  {Next: -zero},
		"in doubt for a negative":   {Next: zero, UnackedTo: -1},
		"in doubt for a day":        {Next: zero - maxInDoubt - 1, UnackedTo: zero},
		"too far ahead":             {Next: zero + MaxAhead + 1},
		"too far ahead and doubted": {Next: zero, UnackedTo: zero + MaxAhead + 1},
		"far too far ahead":         {Next: 1 << 62},
	} {
		if got, err := at.Restore(line, 0); err == nil || got != (Position{Next: zero}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
