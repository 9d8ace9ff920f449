package prom_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/prom"
)

// idleService is a service whose resources are idle most of the time. Its history is short.
type idleService struct {
	c      *collector.Collector
	now    *time.Time
	second int
	held   func()
	active map[string][]int64 // Unix seconds with activity by resource; requests is the total
	began  map[string]int64
}

const (
	idleHistory = 100 * time.Second
	requests    = "" // the total of all requests
)

func newIdleService(t *testing.T) *idleService {
	t.Helper()
	o := collector.Options{RetireAfter: idleHistory + 2*time.Second}
	o.Windows.History = idleHistory
	q := &idleService{active: map[string][]int64{}, began: map[string]int64{}}
	q.c, q.now = service(t, o)
	q.began[requests], q.began["never"] = q.now.Unix(), q.now.Unix()
	q.c.Resource("never") // has a name and no calls
	return q
}

// live runs the service for one second.
func (q *idleService) live(t *testing.T) {
	t.Helper()
	unix := q.now.Unix()
	did := func(name string) {
		if !q.did(name, unix, unix) {
			q.active[name] = append(q.active[name], unix)
		}
		if name != requests { // a retired resource starts again
			q.began[name] = q.c.Resource(name).View().Node().Began().Unix()
		}
	}
	call := func(name string) (end func()) {
		e := q.c.Resource(name).Enter()
		did(name)
		return func() { e.Exit(nil) }
	}
	at := func(part time.Duration) { *q.now = time.Unix(unix, 0).UTC().Add(part) }
	at(300 * ms)
	call("busy")()
	if q.second%25 == 3 {
		q.c.Resource("periodic").Block("")
		did("periodic")
	}
	if q.second%70 == 0 { // each of the three origins is retired before it calls again
		_, e, err := q.c.Enter(t.Context(), "bursts", collector.Inbound(), collector.Origin(fmt.Sprint(q.second/70%3)))
		if err != nil {
			t.Fatal(err)
		}
		did("bursts")
		did(requests)
		at(700 * ms) // in sliding windows the call is also part of the next second
		e.Exit(nil)
	}
	if q.second%200 == 50 {
		q.held = call("held")
	}
	if q.held != nil {
		did("held")
		if q.second%200 == 130 {
			at(800 * ms)
			q.held()
			q.held = nil
		}
	}
	if q.second == 0 {
		call("once")()
	}
	q.second++
	*q.now = time.Unix(unix+1, 0).UTC()
}

// idle reports whether the second has only the pass metric.
func (q *idleService) idle(name string, unix int64) bool {
	return unix-60 >= q.began[name] && !q.did(name, unix-60, unix)
}

// did reports whether the resource was active in the seconds from to to, both included.
func (q *idleService) did(name string, from, to int64) bool {
	i, _ := slices.BinarySearch(q.active[name], from)
	return i < len(q.active[name]) && q.active[name][i] <= to
}

// check compares the samples of a page with the expected samples of each second, and returns the number of samples.
func (q *idleService) check(t *testing.T, body string, histogram bool) (samples int) {
	t.Helper()
	columns := len(table.Seconds())
	got := map[string]map[int64]int{} // number of samples by second
	points := map[string]map[int64]bool{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		samples++
		series, name := line[:strings.LastIndex(strings.TrimSpace(line[:strings.LastIndex(line, " ")]), " ")], requests
		stamp, err := strconv.ParseInt(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 10, 64)
		if err != nil {
			t.Fatal(line)
		}
		stamp /= 1000
		if _, rest, ok := strings.Cut(series, `resource="`); ok {
			name, _, _ = strings.Cut(rest, `"`)
		}
		if strings.Contains(series, "rt_seconds_") {
			if strings.Contains(series, "rt_seconds_count") {
				if points[name] == nil {
					points[name] = map[int64]bool{}
				}
				points[name][stamp] = true
			}
			continue
		}
		if got[name] == nil {
			got[name] = map[int64]int{}
		}
		got[name][stamp]++
	}
	for name, seconds := range got {
		want := map[int64]bool{}
		for unix, n := range seconds {
			whole := columns - 3 // without response times
			switch {
			case q.idle(name, unix):
				whole = 1
			case histogram:
				recent := unix >= q.now.Unix()-60 // older histograms may be absent
				if want[unix+1] = recent; q.did(name, unix, unix) && unix > q.began[name] && q.idle(name, unix-1) {
					want[unix] = recent
				}
			}
			if n < whole || n > whole+3 || whole == 1 && n > 1 {
				t.Fatalf(
					"%q at %d, %d s after the beginning: %d samples, want %d",
					name,
					q.second,
					unix-q.began[name],
					n,
					whole,
				)
			}
		}
		for unix, must := range want {
			if must && !points[name][unix] {
				t.Fatalf("%q at %d: no histogram at %d", name, q.second, unix-q.began[name])
			}
			delete(points[name], unix)
		}
		for unix := range points[name] {
			t.Fatalf("%q at %d: unexpected histogram at %d", name, q.second, unix-q.began[name])
		}
	}
	return samples
}

// A resource that has been idle for a minute sends only its passes, for any window and any cursor, even if its last
// activity has left the history. With any number of idle resources, responses have as many samples as allowed and no
// more.
func TestIdleResources(t *testing.T) {
	q := newIdleService(t)
	const most = 700
	read := newScraper(t, q.c, prom.SecondsOptions{MaxSamples: most})
	wide := newScraper(t, q.c, prom.SecondsOptions{})
	rnd := rand.New(rand.NewPCG(1, 1))
	last := 1200
	if testing.Short() {
		last = 450 // a little more than three rounds of the origins and two rounds of the held call
	}
	for q.second < last {
		q.live(t)
		if q.second%7 == 0 {
			window := fmt.Sprintf("window=%ds", 1+rnd.IntN(int(idleHistory/time.Second)))
			for histogram, query := range map[bool]string{false: window, true: window + "&histogram=classic"} {
				q.check(t, wide.get(query).Body.String(), histogram)
			}
		}
		for _, every := range []int{1, 5, 15, 40} { // cursors with these scrape intervals
			for histogram, query := range map[bool]string{false: "cursor=a", true: "histogram=classic&cursor=a"} {
				if q.second%every != 0 {
					continue
				}
				body := read.get(fmt.Sprint(query, every)).Body.String()
				n := q.check(t, body, histogram)
				if n > most && strings.Count(body, `windowstat_persecond_pass{resource="busy"}`) > 1 {
					t.Fatalf("at %d, every %d: response with %d samples", q.second, every, n)
				}
			}
		}
	}
	if n := len(q.began); n != 7 {
		t.Errorf("%d resources", n)
	}
	if n := len(wide.seconds("window=10s&resource=never", "persecond_pass")); n != 0 {
		t.Errorf("the resource without calls has %d seconds", n)
	}
}

// A hundred idle resources take a hundred samples a second, and a page may have as many seconds as that allows.
func TestIdleResourcesDoNotShrinkResponses(t *testing.T) {
	const resources = 100
	c, now := service(t, collector.Options{})
	for i := range resources {
		c.Resource(fmt.Sprint(i)).Block("")
	}
	*now = now.Add(200 * time.Second)
	read := newScraper(
		t,
		c,
		prom.SecondsOptions{MaxSamples: 100 * (resources + 1), MaxBytes: 100 * (resources + 1) * 90},
	)
	for query, want := range map[string]int{
		"window=100s": http.StatusOK, "window=101s": http.StatusBadRequest,
		"window=100s&histogram=classic": http.StatusBadRequest,
		"window=99s&histogram=classic":  http.StatusOK, "window=100s&metric=persecond_block": http.StatusOK,
	} {
		if rec := read.get(query); rec.Code != want {
			t.Errorf("%s: %d", query, rec.Code)
		}
	}
	if n := len(read.seconds("window=100s", "persecond_pass")); n != 100*resources {
		t.Errorf("%d samples", n)
	}
	if n := len(read.seconds("window=100s", "persecond_block")); n != 0 {
		t.Errorf("%d samples of blocks", n)
	}
}

// The native histogram of an idle resource is empty for a minute, and then absent until its next call.
func TestNativeHistogramOfAnIdleResource(t *testing.T) {
	c, now := service(t, collector.Options{})
	began := now.Unix()
	call := func() { e := c.Resource("a").Enter(); *now = now.Add(ms); e.Exit(nil) }
	call()
	*now = time.Unix(began+100, 0)
	call()
	*now = time.Unix(began+102, 0)
	families := askNative(t, newScraper(t, c, prom.SecondsOptions{}).page, "window=60s")
	all := families["windowstat_persecond_rt_distribution_seconds"]["a"]
	got := map[int64]uint64{}
	for unix, m := range all {
		if h := m.GetHistogram(); h.GetSampleCount() == 0 && len(h.PositiveSpan) != 1 {
			t.Errorf("the empty histogram of second %d is not native: %v", unix-began, h)
		}
		got[unix-began] = m.GetHistogram().GetSampleCount()
	}
	want := map[int64]uint64{100: 1, 101: 0}
	for second := int64(42); second <= 60; second++ {
		want[second] = 0
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

var sampleLine = regexp.MustCompile(`(?m)^[^#]`)

// A response respects its limit even if all idle resources become active in the same second.
func TestResponsesAreBoundedWhenAllResourcesBecomeActive(t *testing.T) {
	const resources, seconds = 10, 5
	c, now := service(t, collector.Options{})
	call := func() {
		for i := range resources {
			e := c.Resource(fmt.Sprint(i)).Enter()
			*now = now.Add(ms)
			e.Exit(nil)
		}
	}
	call()
	*now = now.Truncate(time.Second).Add(100 * time.Second)
	call()
	*now = now.Truncate(time.Second).Add(time.Second)
	lines := func(query string, o prom.SecondsOptions) int {
		return len(sampleLine.FindAllString(newScraper(t, c, o).get(query).Body.String(), -1))
	}
	first := lines("histogram=classic&window=1s", prom.SecondsOptions{})
	second := resources*(len(table.Seconds())+(first/resources-len(table.Seconds()))/2) + 1
	*now = now.Add((seconds - 1) * time.Second)
	o := prom.SecondsOptions{MaxSamples: seconds * second}
	query := fmt.Sprintf("histogram=classic&window=%ds", seconds)
	if n := lines(query, prom.SecondsOptions{}); n <= o.MaxSamples-3*resources*seconds {
		t.Errorf("%d samples, too few for the test", n)
	}
	if n := lines(query, o); n > o.MaxSamples {
		t.Errorf("%d samples, more than %d", n, o.MaxSamples)
	}
	query = fmt.Sprintf("histogram=classic&window=%ds", seconds-1)
	if n := lines(query, o); n > o.MaxSamples || n < (seconds-2)*second {
		t.Errorf("%d samples of one second less, limit %d", n, o.MaxSamples)
	}
}

// The same holds for seconds from the log: a response has as many of them as its limit allows.
func TestIdleResourcesFromTheLog(t *testing.T) {
	const resources, lived, most = 100, 200, 2000
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := begin(t, dir, &at)
	for second := range lived {
		if second == 0 {
			for i := range resources {
				p.stats.Resource(fmt.Sprint(i)).Block("")
			}
		}
		p.stats.Resource("busy").Block("")
		at = at.Add(time.Second)
	}
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	p = p.again(t, dir, &at)
	const want = lived*2 + resources*(61*2+(lived-61))
	got, responses := 0, 0
	for ; responses < 100; responses++ {
		body := p.get("cursor=x&metric=persecond_pass&metric=persecond_block").Body.String()
		n := len(sampleLine.FindAllString(body, -1))
		if n > most {
			t.Errorf("response with %d samples", n)
		}
		if got += n; n == 0 {
			break
		}
	}
	if got != want || responses > (want+lived)/(most-2*resources)+1 {
		t.Errorf("%d samples in %d responses, want %d", got, responses, want)
	}
}
