package replay

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// A log's statuses are the codes of what it tells of: with durations and without, in seconds so busy that calls that are alike
// are put together, and with statuses that nobody has registered. Refused calls have none, nor have those whose line has none.
func TestCodesAreTheStatuses(t *testing.T) {
	statuses := []int{200, 200, 404, 429, 503, 299, 0, 499, 304}
	for format, line := range map[string]string{"$msec $status $request_time": "%d.000 %s 0.500\n", "$msec $status": "%d.000 %s\n"} {
		t.Run(format, func(t *testing.T) {
			var text strings.Builder
			want := map[string]int64{}
			for i := range 9000 {
				status := statuses[i%len(statuses)]
				logged := fmt.Sprint(status)
				code := logged
				switch status {
				case 0:
					logged, code = "-", ""
				case 299, 499:
					code = "other"
				}
				fmt.Fprintf(&text, line, 1_700_000_000+i/3000, logged)
				if status != 429 {
					want[code]++
				}
			}
			o := options(t, "-")
			o.Stdin = strings.NewReader(text.String())
			var err error
			if o.Format, err = accesslog.Nginx(format); err != nil {
				t.Fatal(err)
			}
			r, err := newRun(o)
			if err != nil {
				t.Fatal(err)
			}
			r.each = func(*Second) error { return nil }
			if err := errors.Join(r.inspect(t.Context().Done()), r.play(t.Context())); err != nil {
				t.Fatal(err)
			}
			if r.Timed != (strings.HasSuffix(format, "time")) || r.Malformed != 0 {
				t.Fatalf("%+v", r.report())
			}
			got := map[string]int64{}
			for _, x := range r.player.stats.Seal().Resources {
				for code, n := range x.View().Codes() {
					got[code.String()] += n
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
