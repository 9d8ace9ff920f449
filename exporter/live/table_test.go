package live_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/live"
)

// The server sorts and searches the table, and sends one page of it. Pinned rows come first in any order. Invalid
// parameters are refused, and the response names each of them.
func TestTablePages(t *testing.T) {
	p, c, now := newPage(t, live.Options{MaxRows: 3})
	for i := range 10 {
		for range 11 + i {
			c.Resource(fmt.Sprint("R", i)).Block("")
		}
		e := c.Resource(fmt.Sprint("r-rt", i)).Enter()
		*now = now.Add(time.Duration(10-i) * time.Millisecond)
		e.Exit(nil)
	}
	*now = now.Add(950 * time.Millisecond)
	for parameters, want := range map[string]string{
		"sort=block":                 "[R9 R8 R7] of 20",
		"sort=block&from=3":          "[R6 R5 R4] of 20",
		"sort=block&from=19":         "[r-rt9] of 20",
		"sort=block&from=20":         "[] of 20",
		"sort=block&up=true":         "[r-rt9 r-rt8 r-rt7] of 20",
		"sort=name":                  "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=name&up=true":          "[R9 R8 R7] of 20",
		"sort=name&search=RT":        "[r-rt0 r-rt1 r-rt2] of 10",
		"sort=rt_p99&search=r":       "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=rt_avg&search=nothing": "[] of 0",
		"sort=peak":                  "[r-rt0 r-rt1 r-rt2] of 20",
		"sort=block&held=3.1":        "[R1 R0 R9] of 20",
		"sort=block&held=3.1.99":     "[R1 R0 R9] of 20",
		"sort=block&held=3.1.5":      "[R1 R0 R2] of 20",
		"sort=block&search=" + strings.Repeat("R", 900): "[] of 0",
	} {
		m := poll(t, p, "", parameters)
		if got := fmt.Sprint(m.names(), " of ", m.Table.Matches); got != want || m.Table.Resources != 20 {
			t.Errorf("%.50s: %s, want %s; %d resources", parameters, got, want, m.Table.Resources)
		}
	}
	for _, invalid := range []string{
		"sort=x", "sort=in_flight", "up=z", "from=-1", "from=x", "from=1000000001", "held=1..2", "held=x",
		"held=1.2.3.4", "search=" + strings.Repeat("R", 1001), "had=x", "range=1", "range=1-x", "range=5-5",
		"range=0-5", "range=5-1", "range=1-602", "range=1-2-3", "range=-9223372036854775808-9223372036854775807",
	} {
		if rec := get(t, p, "/live/seconds?"+invalid); rec.Code != http.StatusBadRequest {
			t.Errorf("%.50s: %d", invalid, rec.Code)
		}
		if rec := get(t, p, "/live/stream?"+invalid); rec.Code != http.StatusBadRequest {
			t.Errorf("stream, %.50s: %d", invalid, rec.Code)
		}
	}
	rec := get(t, p, "/live/seconds?sort=x&up=z&from=-1&after=q&range=2-1&had=y")
	if strings.Count(rec.Body.String(), "\n") != 6 {
		t.Errorf("for six invalid parameters the response is %s", rec.Body)
	}
}

// The table of a range has sums and averages over its seconds, and the p99 of all its calls. The small charts have the
// passes of each second, or the highest passes of each group of seconds if the range has more than sixty.
func TestTableOfRange(t *testing.T) {
	p, c, now := newPage(t, live.Options{})
	begin := now.Unix()
	call := func(name string, rt time.Duration) {
		e := c.Resource(name).Enter()
		*now = now.Add(rt)
		e.Exit(nil)
	}
	for second := range 300 {
		for range second % 7 {
			call("a", 10*time.Millisecond)
		}
		if second == 250 {
			c.Resource("b").Block("")
			call("b", 500*time.Millisecond)
		}
		*now = now.Truncate(time.Second).Add(time.Second)
	}
	for _, tc := range []struct {
		first, end int64
		// want is the first second and the end of the table, its rows, and for each row the name with its small chart:
		// the bars, or the number of bars if there are more than ten.
		want string
	}{
		{250, 251, "250 251 [[1 5 0 5 0 50000 10000 10000] [2 1 1 1 0 500000 500000 500000]] a60 b[1]"},
		{248, 252, "248 252 [[1 18 0 18 0 45000 10000 10000] [2 1 1 1 0 250000 500000 500000]] a[3 4 5 6] b[1 0]"},
		{7, 9, "7 9 [[1 1 0 1 0 5000 10000 -1]] a[0 1]"},
		{0, 180, "0 180 [[1 535 0 535 0 29888 10000 -1]] a60"},
		{-500, 2, "0 2 [[1 1 0 1 0 10000 10000 -1]] a[1]"},
		{299, 400, "299 300 [[1 5 0 5 0 50000 10000 10000] [2 0 0 0 0 0 -1 -1]] a60 b50"},
		{400, 500, "400 500 []"},
	} {
		m := poll(t, p, "", fmt.Sprintf("range=%d-%d", begin+tc.first, begin+tc.end))
		got := fmt.Sprint(m.Table.First-begin, m.Table.End-begin, " ", m.rows())
		for _, x := range m.Table.Rows {
			if got += " " + x.Name; len(x.Past) > 10 {
				got += fmt.Sprint(len(x.Past))
			} else {
				got += fmt.Sprint(x.Past)
			}
		}
		if got != tc.want {
			t.Errorf("seconds %d to %d: %s\nwant %s", tc.first, tc.end, got, tc.want)
		}
	}
}
