package replay

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
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
			f, err := NewFollower(o, time.Unix(1_700_000_000-1, 0))
			if err != nil {
				t.Fatal(err)
			}
			c, err := collector.New(collector.Options{Now: f.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			count := func() { // before it is retired
				clear(got)
				for _, x := range c.Seal().Resources {
					for code, n := range x.View().Codes() {
						got[code.String()] += n
					}
				}
			}
			if err := f.Run(t.Context(), c, count); err != nil {
				t.Fatal(err)
			}
			if r := f.Report(); r.Timed != (strings.HasSuffix(format, "time")) || r.Uncounted() != 0 {
				t.Fatalf("%+v", r)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
