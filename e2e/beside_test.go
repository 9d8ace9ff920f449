package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// besideSeconds is the duration of the calls in [TestBesideEachOther].
const besideSeconds = 25

// order is the resource of the calls from outside. Each of its calls makes two calls of db.
const order = "GET /order"

// A seen holds the values that a view shows for one second. Missing values are NaN.
type seen struct {
	pass, block, exception float64
	average, p99           float64 // in milliseconds
	flight                 float64 // on average
}

func (s seen) String() string {
	number := func(v float64, digits int) string {
		if math.IsNaN(v) {
			return "-"
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	return fmt.Sprintf("%4.0f %3.0f %3.0f %7s %7s %7s", s.pass, s.block, s.exception, number(s.average, 3),
		number(s.p99, 3), number(s.flight, 3))
}

// A view holds the values that one source shows for each second of each resource of an instance, and of the total. The
// total has an empty name.
type view map[besideKey]seen

type besideKey struct {
	instance int
	resource string
	second   int64
}

// TestBesideEachOther calls two instances from three origins. Each call makes two calls of its own. Some calls are
// refused, some fail, and one second has many. The test compares five sources second by second: the caller's own
// counts, the metric log, the per-second page, the live page and top. They must agree to the digits that they show.
func TestBesideEachOther(t *testing.T) {
	t.Parallel()
	binary := buildWindowstat(t)
	var services []*service
	var addresses []string
	var ends []func() error
	for range 2 {
		l := listen(t, "127.0.0.1:0")
		s, end := startService(t, l)
		services, addresses, ends = append(services, s), append(addresses, l.Addr().String()), append(ends, end)
	}
	views := map[string]view{}
	for _, name := range []string{"caller", "log", "page", "live", "top"} {
		views[name] = view{}
	}
	byOrigin, unknown := map[string]int64{}, map[int64]bool{}
	begin := time.Now().Unix() + 2
	enough := func() bool {
		seconds, inTop := 0, 0
		for key := range views["caller"] {
			if key.instance == 0 && key.resource == order && !unknown[key.second] {
				seconds++
			}
		}
		for key := range views["top"] {
			if _, ok := views["caller"][besideKey{key.instance, order, key.second}]; ok && !unknown[key.second] {
				inTop++
			}
		}
		return seconds > besideSeconds/2 && inTop >= 6
	}
	// A busy machine yields fewer usable seconds. The page has the last minute.
	second, burst := begin, false
	for ; second < begin+besideSeconds || !enough() && second < begin+2*besideSeconds; second++ {
		second = max(second, time.Now().Unix())
		sleepUntil(t.Context(), time.Unix(second, int64(200*time.Millisecond)))
		first := time.Now().Unix()
		var calls sync.WaitGroup
		for i, s := range services {
			n := int((second*7)%40) + 5 + 10*i
			if !burst && second >= begin+besideSeconds/2 {
				n += 800
			}
			calls.Go(func() { callAtOnce(t.Context(), s, n) })
			for k := range n {
				byOrigin[origins[k%3]]++
			}
			views["caller"][besideKey{i, order, second}] = seen{
				float64(n), float64(n / 5), float64((n + 9) / 10),
				math.NaN(), math.NaN(), math.NaN(),
			}
			views["caller"][besideKey{i, "db", second}] = seen{float64(2 * n), 0, 0, math.NaN(), math.NaN(), math.NaN()}
		}
		calls.Wait()
		burst = burst || second >= begin+besideSeconds/2
		if first != second || time.Now().Unix() != second { // the second of a call's begin or end is unknown
			for late := second; late <= max(second+1, time.Now().Unix()); late++ {
				unknown[late] = true
			}
		}
		if second%5 == 0 {
			views["top"].top(t, binary, addresses)
		}
	}
	sleepUntil(t.Context(), time.Unix(second+1, 0))
	maps.DeleteFunc(views["caller"], func(key besideKey, _ seen) bool { return unknown[key.second] })
	for key, x := range views["caller"] { // the total has the calls from outside
		if key.resource == order {
			views["caller"][besideKey{key.instance, "", key.second}] = x
		}
	}
	origin := map[string]int64{}
	for i, address := range addresses {
		views["page"].page(t, i, address)
		views["live"].live(t, i, address)
		var m struct {
			Details struct {
				Origins []struct {
					Name string
					Pass int64
				}
			}
		}
		fetch(t, "http://"+address+livePath+"seconds?resource="+url.QueryEscape(order), &m)
		for _, x := range m.Details.Origins {
			origin[x.Name] += x.Pass
		}
		if err := ends[i](); err != nil {
			t.Fatal(err)
		}
		views["log"].log(t, i, services[i])
	}
	if fmt.Sprint(origin) != fmt.Sprint(byOrigin) {
		t.Errorf("by origin %v passed; %v were called", origin, byOrigin)
	}
	compareViews(t, views, begin, second)
}

var origins = []string{"web", "mobile", "partner"}

// callAtOnce makes n concurrent calls, and records n/5 refusals in addition.
func callAtOnce(ctx context.Context, s *service, n int) {
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			_ = s.stats.Do(ctx, order, func(ctx context.Context) error {
				for range 2 {
					_ = s.stats.Do(ctx, "db", func(context.Context) error { return nil }, collector.Outbound())
				}
				time.Sleep(10 * time.Millisecond)
				if k%10 == 0 {
					return errFailed
				}
				return nil
			}, collector.Inbound(), collector.Origin(origins[k%3]))
		})
	}
	for k := range n / 5 {
		s.stats.Block(ctx, order, "full", collector.Inbound(), collector.Origin(origins[k%3]))
	}
	all.Wait()
}

// compareViews compares each view with the others, and prints the total of the first instance in all views.
func compareViews(t *testing.T, views map[string]view, begin, end int64) {
	t.Helper()
	names := []string{"caller", "log", "page", "live", "top"}
	// Permitted differences between views. The log has milliseconds and the others have microseconds; some truncate and
	// some round.
	digits := map[string]float64{"log": 1.0001, "page": 1e-6, "live": 0.0011, "top": 0.0011}
	counted := map[string]int{}
	for key, want := range views["caller"] {
		exact := views["page"][key]
		for _, name := range names {
			got, ok := views[name][key]
			if !ok {
				continue
			}
			counted[name]++
			near := func(v, of, by float64) bool { return math.IsNaN(v) || math.IsNaN(of) || math.Abs(v-of) <= by }
			if got.pass != want.pass || got.block != want.block || got.exception != want.exception ||
				!near(got.average, exact.average, digits[name]) || !near(got.p99, exact.p99, digits[name]) ||
				!near(got.flight, exact.flight, digits[name]) {
				t.Errorf("instance %d, %q, second %d: %s shows %v, want %v as called; the per-second page shows %v",
					key.instance, key.resource, key.second, name, got, want, exact)
			}
		}
	}
	t.Logf("compared seconds of resources and totals: %v", counted)
	for name, least := range map[string]int{
		"caller": besideSeconds * 3, "log": besideSeconds * 3,
		"page": besideSeconds * 3, "live": besideSeconds * 2, "top": 6,
	} {
		if counted[name] < least {
			t.Errorf("%s has %d seconds; it should have %d", name, counted[name], least)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"instance 0, all inbound calls: pass block exception, average and p99 in ms, in flight on average\n%-7s",
		"second")
	for _, name := range names {
		fmt.Fprintf(&b, "| %-37s", name)
	}
	for second := begin; second < end; second++ {
		fmt.Fprintf(&b, "\n%+-7d", second-begin)
		for _, name := range names {
			text := ""
			if x, ok := views[name][besideKey{0, "", second}]; ok {
				text = x.String()
			}
			fmt.Fprintf(&b, "| %-37s", text)
		}
	}
	t.Log(b.String())
}

var sampleLine = regexp.MustCompile(`(?m)^windowstat_persecond_(\w+?)(?:\{resource="([^"]*)"\})? (\S+) (\d+)$`)

// page reads the per-second page.
func (v view) page(t *testing.T, instance int, address string) {
	t.Helper()
	values := map[besideKey]map[string]float64{}
	for _, m := range sampleLine.FindAllStringSubmatch(body(t, "http://"+address+secondsPath+"?window=60s"), -1) {
		at, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		key := besideKey{instance, m[2], at / 1000}
		if values[key] == nil {
			values[key] = map[string]float64{}
		}
		values[key][strings.TrimPrefix(m[1], "inbound_")] = n
	}
	for key, x := range values {
		p99, ok := x["rt_p99_seconds"]
		if !ok {
			p99 = math.NaN()
		}
		v[key] = seen{
			x["pass"], x["block"], x["exception"], x["rt_sum_seconds"] / x["complete"] * 1000,
			p99 * 1000, x["in_flight_avg"],
		}
	}
}

// live reads the data that the live page receives for the total and for both resources.
func (v view) live(t *testing.T, instance int, address string) {
	t.Helper()
	for _, resource := range []string{order, "db"} {
		var m struct {
			Columns         []string
			Total, Resource [][]float64
		}
		fetch(t, "http://"+address+livePath+"seconds?resource="+url.QueryEscape(resource), &m)
		v.add(m.Columns, instance, "", m.Total)
		v.add(m.Columns, instance, resource, m.Resource)
	}
}

// add adds the data that the live page receives for a resource.
func (v view) add(columns []string, instance int, resource string, seconds [][]float64) {
	for _, s := range seconds {
		of := func(column string, unit float64) float64 {
			if n := s[1+slices.Index(columns, column)]; n >= 0 {
				return n / unit
			}
			return math.NaN()
		}
		v[besideKey{instance, resource, int64(s[0])}] = seen{
			of("pass", 1), of("block", 1), of("exception", 1),
			of("rt_avg", 1000), of("rt_p99", 1000), of("in_flight_avg", 1e6),
		}
	}
}

// top reads the output of top for both instances.
func (v view) top(t *testing.T, binary string, addresses []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(shell(t, `"$1" top --once "${@:2}"`,
		append([]string{binary}, addresses...)...)), "\n")
	columns := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		cell := func(name string) string {
			if i := slices.Index(columns, name); i >= 0 && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		number := func(name string) float64 {
			n, err := strconv.ParseFloat(cell(name), 64)
			if cell(name) == "-" {
				return math.NaN()
			} else if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
		key := besideKey{max(0, slices.Index(addresses, cell("target"))), cell("resource"), int64(number("second"))}
		v[key] = seen{
			number("pass"), number("block"), number("exception"), number("rt_mean_ms"),
			number("rt_p99_ms"), number("in_flight_avg"),
		}
	}
}

// log reads the metric log, which must have ended.
func (v view) log(t *testing.T, instance int, s *service) {
	t.Helper()
	files, err := s.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		name := r.Resource
		if name == collector.InboundTotal {
			name = ""
		}
		v[besideKey{instance, name, r.Start.Unix()}] = seen{
			float64(r.Pass), float64(r.Block), float64(r.Exception),
			float64(r.RT.Milliseconds()), math.NaN(), math.NaN(),
		}
	}
}

// body returns the content of a page.
func body(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", url, resp.StatusCode, err, b)
	}
	return string(b)
}

// fetch reads a page in JSON.
func fetch(t *testing.T, url string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body(t, url)), into); err != nil {
		t.Fatal(err)
	}
}
