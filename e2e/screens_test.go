package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// screensFor sets the duration of the calls of [TestScreens], if it differs from one run of its story.
const (
	screensFor   = "WINDOWSTAT_E2E_SCREENS"
	screensStory = 75 * time.Second
)

// A did holds the events of a second of a resource, or of the total, whose name is empty.
type did struct {
	pass, block, complete, exception int64
	rts                              []time.Duration
	spent                            time.Duration // by all calls in the second
	inFlight                         int64         // at the end of the second
}

// A story is a service whose calls run under a separate clock, and the record of its events.
type story struct {
	*paced
	begin int64
	long  bool
	did   map[string]map[int64]*did
	hung  []*told
	in    map[string]int64 // in flight
	by    map[string]int64 // passes of order by origin
	calls int
	told  map[int64]time.Time // when a second's calls were made, by the servers' clock
}

// A told holds a call in flight.
type told struct {
	*collector.Entry
	name    string
	inbound bool
	begin   time.Time
}

func (s *story) at(name string, second int64) *did {
	if s.did[name] == nil {
		s.did[name] = map[int64]*did{}
	}
	if s.did[name][second] == nil {
		s.did[name][second] = &did{inFlight: s.in[name]}
	}
	return s.did[name][second]
}

// each calls f for a resource, and also for the total if the call is inbound.
func (s *story) each(name string, inbound bool, f func(name string, d *did)) {
	now := s.clock.now().Unix()
	f(name, s.at(name, now))
	if inbound {
		f("", s.at("", now))
	}
}

// enter begins a call, and returns nil if the call is refused.
func (s *story) enter(ctx context.Context, name string, o ...collector.CallOption) (context.Context, *told) {
	inbound := len(o) > 1 // with its origin
	ctx, e, err := s.stats.Enter(ctx, name, o...)
	if err != nil {
		s.each(name, inbound, func(_ string, d *did) { d.block++ })
		return ctx, nil
	}
	s.each(name, inbound, func(name string, d *did) {
		d.pass, d.inFlight, s.in[name] = d.pass+1, d.inFlight+1, s.in[name]+1
	})
	return ctx, &told{&e, name, inbound, s.clock.now()}
}

// exit ends a call.
func (s *story) exit(x *told, err error) {
	now := s.clock.now()
	x.Exit(err)
	s.each(x.name, x.inbound, func(name string, d *did) {
		d.complete, d.inFlight, s.in[name] = d.complete+1, d.inFlight-1, s.in[name]-1
		if err != nil {
			d.exception++
		}
		d.rts = append(d.rts, now.Sub(x.begin))
		for second := x.begin.Unix(); second <= now.Unix(); second++ {
			from, to := time.Unix(second, 0), time.Unix(second+1, 0)
			if x.begin.After(from) {
				from = x.begin
			}
			if now.Before(to) {
				to = now
			}
			s.at(name, second).spent += to.Sub(from)
		}
	})
}

func (s *story) wait(d time.Duration) { s.clock.set(s.clock.now().Add(d)) }

// tell makes the calls of a second of the story. Each call makes two further calls, and the callers are three origins.
// Once a minute a burst exceeds the limit of calls in a second. Later, many calls fail or are slow, and a dependency
// hangs until the limit of calls in flight refuses calls.
func (s *story) tell() {
	k := s.second - s.begin
	within := func(from, to, fromLong, toLong int64) bool {
		if s.long {
			from, to = fromLong, toLong
		}
		return k >= from && k < to
	}
	n := 12 + int(3*(k%5))
	if k%60 == 17 {
		n = 150
	}
	failing, slow, hanging := within(25, 35, 180, 300), within(40, 50, 300, 420), within(55, 70, 420, 540)
	for range n {
		s.calls++
		origin := origins[s.calls%3]
		ctx, e := s.enter(context.Background(), order, collector.Inbound(), collector.Origin(origin))
		if e == nil {
			continue
		}
		s.by[origin]++
		for range 2 {
			_, db := s.enter(ctx, "db", collector.Outbound())
			s.wait(250 * time.Microsecond)
			s.exit(db, nil)
		}
		switch {
		case slow:
			s.wait(9 * time.Millisecond)
		case s.calls%10 == 0:
			s.wait(12 * time.Millisecond)
		default:
			s.wait(500 * time.Microsecond)
		}
		var err error
		if s.calls%50 == 0 || failing && s.calls%4 == 0 {
			err = errFailed
		}
		s.exit(e, err)
	}
	if !hanging {
		for _, x := range s.hung {
			s.exit(x, errFailed)
		}
		s.hung = nil
	}
	ctx, e := s.enter(context.Background(), "GET /report", collector.Inbound(), collector.Origin("web"))
	if e == nil {
		return
	}
	_, upstream := s.enter(ctx, "upstream", collector.Outbound())
	if hanging {
		s.hung = append(s.hung, upstream, e)
		return
	}
	s.wait(20 * time.Millisecond)
	s.exit(upstream, nil)
	s.exit(e, nil)
}

// TestScreens compares the true events of a service with every view of it, second by second: the metric log, the live
// page, top, and the expressions of the dashboards, evaluated by Prometheus and by VictoriaMetrics with their shipped
// configurations. It logs the alerts of that time.
func TestScreens(t *testing.T) {
	t.Parallel()
	length := screensStory
	if text := os.Getenv(screensFor); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < screensStory {
			t.Fatalf("%s is %q; it must be %v at least", screensFor, text, screensStory)
		}
	}
	begin := time.Now().Unix()
	s := &story{
		paced: &paced{second: begin, clock: newClock(middle(begin))}, begin: begin, long: length > 9*time.Minute,
		did: map[string]map[int64]*did{}, in: map[string]int64{}, by: map[string]int64{}, told: map[int64]time.Time{},
	}
	x, err := exporter.New(exporter.Options{
		App: "e2e", Collector: collector.Options{Now: s.clock.now},
		Log: metriclog.Options{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.stats = x.Collector
	if err := s.stats.SetLimits([]collector.Limit{
		{Resource: order, Grade: collector.QPS, Count: 60},
		{Resource: "GET /report", Grade: collector.Concurrency, Count: 4},
	}); err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, x.Handler(), l, x.ConnState)
	stop := x.Start()
	t.Cleanup(func() { _ = stop() })
	servers := []*server{
		startConfigured(t, "prometheus", prometheus3,
			shippedConfig(t, "prometheus", "prometheus.yaml", l.Addr().String())),
		startConfigured(t, "victoria", victoria,
			shippedConfig(t, "victoria", "victoriametrics.yaml", l.Addr().String())),
	}
	t.Logf("the service is at %s, %s at %s, %s at %s", l.Addr(), servers[0].name, servers[0].addr,
		servers[1].name, servers[1].addr)
	binary := buildWindowstat(t)
	s.begin = time.Now().Unix() + 1 // the servers' clock agrees
	sleepUntil(t.Context(), time.Unix(s.begin, 0))
	s.second = s.begin
	s.clock.set(middle(s.second))
	views := map[string]view{"live": {}, "top": {}, "log": {}, "page": {}}
	s.live(func() bool {
		if k := s.second - s.begin; k > 5 && k%15 == 0 {
			views["top"].top(t, binary, []string{l.Addr().String()})
			views["page"].page(t, 0, l.Addr().String())
		}
		s.tell()
		s.told[s.second] = time.Now()
		return s.second < s.begin+int64(length.Seconds())
	})
	end := s.second - 1 // all views have its calls
	deadline := time.Now().Add(catchUp)
	for _, server := range servers {
		await(t, server, "windowstat_persecond_pass", end, deadline)
	}
	for _, name := range []string{order, "db", "GET /report", "upstream"} {
		views["live"].series(t, "http://"+l.Addr().String()+livePath, name)
	}
	var m struct {
		Details struct {
			Origins []struct {
				Name string
				Pass int64
			}
		}
	}
	fetch(t, "http://"+l.Addr().String()+livePath+"seconds?resource="+url.QueryEscape(order), &m)
	for _, o := range m.Details.Origins {
		if o.Pass != s.by[o.Name] {
			t.Errorf("%s: %d passed, the live page says %d", o.Name, s.by[o.Name], o.Pass)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	views["log"].log(t, 0, &service{log: x.Log})
	s.compare(t, views, end)
	for _, server := range servers {
		s.checkSeconds(t, server, end)
		s.checkFigures(t, server, end)
	}
	s.alerts(t, servers[0])
}

// series reads the values of the total and of a resource that the live page receives.
func (v view) series(t *testing.T, page, resource string) {
	t.Helper()
	var m struct {
		Columns         []string
		Total, Resource [][]float64
	}
	fetch(t, page+"seconds?resource="+url.QueryEscape(resource), &m)
	v.add(m.Columns, 0, "", m.Total)
	v.add(m.Columns, 0, resource, m.Resource)
}

// compare compares each view with the events of each second.
func (s *story) compare(t *testing.T, views map[string]view, end int64) {
	t.Helper()
	for name, v := range views {
		n, wrong, totals := 0, 0, 0
		for key, got := range v {
			if key.second < s.begin || key.second > end {
				continue
			}
			d := s.at(key.resource, key.second)
			n++
			if key.resource == "" {
				totals++
			}
			var average, p99 float64
			if average, p99 = math.NaN(), math.NaN(); len(d.rts) > 0 {
				average, p99 = d.average()*1000, d.quantile(0.99)*1000
			}
			near := func(got, want, relative, absolute float64) bool {
				return math.IsNaN(got) || math.IsNaN(want) || math.Abs(got-want) <= math.Abs(want)*relative+absolute
			}
			rough := 0.0011
			if name == "log" {
				rough = 1.0001 // milliseconds
			}
			if got.pass != float64(d.pass) || got.block != float64(d.block) || got.exception != float64(d.exception) ||
				!near(got.average, average, 0, rough) || !near(got.p99, p99, 0.091, rough) ||
				!near(got.flight, d.spent.Seconds(), 0, 0.0011) {
				if wrong++; wrong < 10 {
					t.Errorf("%s of %q in second %d says %v; it was %+v", name, key.resource,
						key.second-s.begin, got, *d)
				}
			}
		}
		t.Logf("%s: %d seconds of resources, %d of them totals; %d are wrong", name, n, totals, wrong)
		if totals < int(end-s.begin)/20 {
			t.Errorf("%s has only %d seconds of the total", name, totals)
		}
	}
}

func (d *did) average() float64 {
	sum := time.Duration(0)
	for _, rt := range d.rts {
		sum += rt
	}
	return sum.Seconds() / float64(len(d.rts))
}

// quantile returns the response time that a share q of the calls did not exceed.
func (d *did) quantile(q float64) float64 {
	slices.Sort(d.rts)
	return d.rts[max(0, int(math.Ceil(q*float64(len(d.rts))))-1)].Seconds()
}

// nothing is the value of a view without data.
var nothing = math.NaN()

func (d *did) share(n, of int64) float64 {
	if of == 0 {
		return nothing
	}
	return float64(n) / float64(of)
}

// A shown is a line of a panel, and its expected value for a second or for several seconds together.
type shown struct {
	where, legend string
	of            func(*did) float64
	near          float64 // relative tolerance
}

var (
	passes   = func(d *did) float64 { return float64(d.pass) }
	refuses  = func(d *did) float64 { return float64(d.block) }
	ends     = func(d *did) float64 { return float64(d.complete) }
	failures = func(d *did) float64 { return float64(d.exception) }
	flight   = func(d *did) float64 { return d.spent.Seconds() }
	slowOf   = func(q float64) func(*did) float64 {
		return func(d *did) float64 {
			if len(d.rts) == 0 {
				return nothing
			}
			return d.quantile(q)
		}
	}
	averageOf = func(d *did) float64 {
		if len(d.rts) == 0 {
			return nothing
		}
		return d.average()
	}
	refusedShare = func(d *did) float64 { return d.share(d.block, d.pass+d.block) }
	failedShare  = func(d *did) float64 { return d.share(d.exception, d.complete) }
)

// inSeconds lists the lines that are queried for each second.
var inSeconds = []shown{
	{"overview, Peak second and average", "peak second", passes, 0},
	{"overview, Refused: peak second and average", "peak second", refuses, 0},
	{"overview, Failed: worst second", "failed", failures, 0},
	{"overview, Failed: worst second", "ended", ends, 0},
	{"overview, In flight: what a scrape sees", "busiest second", flight, 0},
	{"overview, Peak second by resource", "{{resource}}", passes, 0},
	{"overview, In flight by resource", "{{resource}}", flight, 0},
	{"overview, Slowest call by resource", "{{resource}}", slowOf(1), 0},
	{"resource, Every second, and what a rate shows of it", "busiest second", passes, 0},
	{"resource, Admitted and refused", "admitted", passes, 0},
	{"resource, Admitted and refused", "refused", refuses, 0},
	{"resource, Ended and failed", "ended", ends, 0},
	{"resource, Ended and failed", "failed", failures, 0},
	{"resource, Worst second", "refused", refusedShare, 0},
	{"resource, Worst second", "failed", failedShare, 0},
	{"resource, Response times of single seconds", "slowest", slowOf(1), 0},
	{"resource, Response times of single seconds", "p99", slowOf(.99), .091},
	{"resource, Response times of single seconds", "mean", averageOf, 0},
	{"resource, Response times of single seconds", "fastest", slowOf(0), 0},
	{"resource, In flight", "busiest second", flight, 0},
	{"resource, In flight", "when a second ended", func(d *did) float64 { return float64(d.inFlight) }, 0},
	{"resource, Busiest second by target", "{{instance}}", passes, 0},
}

// checkSeconds queries a server for each line of the dashboards in each second.
func (s *story) checkSeconds(t *testing.T, server *server, end int64) {
	t.Helper()
	for _, x := range inSeconds {
		n, wrong := 0, 0
		for _, resource := range []string{order, "GET /report"} {
			expr := server.withHidden(t, s.expression(t, x, resource))
			for _, line := range server.queryRange(t, expr, s.begin+1, end, 1) {
				name := resource
				if strings.HasPrefix(x.where, "overview") {
					name = line.Metric["resource"] // the total has no resource
				}
				for _, v := range line.Values {
					want := x.of(s.at(name, v.at/1000))
					n++
					if math.IsNaN(v.value) && math.IsNaN(want) {
						continue
					}
					if !(math.Abs(v.value-want) <= want*x.near+2e-5) {
						if wrong++; wrong < 5 {
							t.Errorf("%s: %s, %s of %q in second %d is %v; it was %v", server.name, x.where, x.legend,
								name, v.at/1000-s.begin, v.value, want)
						}
					}
				}
			}
		}
		t.Logf("%-10s | %-52s | %-20s | %5d values | %d wrong", server.name, x.where, x.legend, n, wrong)
		if n < int(end-s.begin)/2 {
			t.Errorf("%s: %s, %s has only %d values", server.name, x.where, x.legend, n)
		}
	}
}

// expression returns the expression of a line, for a resource. A line with several queries has a value of one of them.
func (s *story) expression(t *testing.T, x shown, resource string) string {
	t.Helper()
	var exprs []string
	for _, target := range targetsOf(t)[x.where] {
		if target.LegendFormat == x.legend {
			exprs = append(exprs, "("+strings.ReplaceAll(target.Expr, "RESOURCE", resource)+")")
		}
	}
	if len(exprs) == 0 {
		t.Fatalf("there is no %s, %s", x.where, x.legend)
	}
	return strings.Join(exprs, " or ")
}

// counted describes the seconds that a server's totals of the minute before at cover, from its first scrape in that
// minute to its last: the last second, the number of seconds, and the number of them per second of the server's clock.
// On a busy machine the story is delayed.
func (s *story) counted(t *testing.T, server *server, at int64) (last, n int64, pace float64) {
	t.Helper()
	first := int64(math.MaxInt64)
	var begin, end time.Time
	for _, v := range server.queryAt(t, `up{job="demo"}[1m]`, float64(at))[0].Values {
		scraped, second := time.UnixMilli(v.at), s.begin-1
		for k, told := range s.told {
			if told.Before(scraped) {
				second = max(second, k)
			}
		}
		if v.value == 0 {
			continue
		}
		if second < first {
			first, begin = second, scraped
		}
		if second >= last {
			last, end = second, scraped
		}
	}
	took := end.Sub(begin).Seconds()
	if n = last - first; took == 0 || math.Abs(float64(n)-took) < 1.5 { // the story was not delayed
		return last, n, 1
	}
	return last, n, float64(n) / took
}

// inRange lists the figures of a minute. Figures from counters cover several scrapes, whose first and last are up to
// five seconds from the ends of the minute, or the scrapes that the server reports.
var inRange = []struct {
	shown
	counters bool
	most     bool // the maximum of the seconds instead of their sum
}{
	{shown{"overview, Peak", "", passes, 0}, false, true},
	{shown{"overview, Average", "", passes, .01}, true, false},
	{shown{"overview, In flight", "", flight, .01}, true, false},
	{shown{"overview, Refused", "", refusedShare, .01}, true, false},
	{shown{"overview, Failed", "", failedShare, .01}, true, false},
	{shown{"overview, p99", "p99", slowOf(.99), .091}, true, false},
	{shown{"resource, Busiest second", "", passes, 0}, false, true},
	{shown{"resource, Average", "", passes, .01}, true, false},
	{shown{"resource, Refused", "", refusedShare, .01}, true, false},
	{shown{"resource, Failed", "", failedShare, .01}, true, false},
	{shown{"resource, p99", "p99", slowOf(.99), .091}, true, false},
	{shown{"resource, Slowest call", "", slowOf(1), 0}, false, true},
	{shown{"resource, In flight on average", "", flight, .01}, true, false},
	{shown{"resource, In flight, busiest", "", flight, 0}, false, true},
}

// together adds up n seconds that end with last.
func (s *story) together(name string, last, n int64) *did {
	all := &did{}
	for second := last - n + 1; second <= last; second++ {
		d := s.at(name, second)
		all.pass, all.block, all.complete, all.exception = all.pass+d.pass, all.block+d.block,
			all.complete+d.complete, all.exception+d.exception
		all.spent += d.spent
		all.rts = append(all.rts, d.rts...)
	}
	return all
}

// checkFigures queries the figures of a minute at several times.
func (s *story) checkFigures(t *testing.T, server *server, end int64) {
	t.Helper()
	for _, x := range inRange {
		for _, resource := range []string{order, "GET /report"} {
			name := resource
			if strings.HasPrefix(x.where, "overview") {
				name = ""
				if resource != order {
					continue
				}
			}
			for at := s.begin + 64; at <= end-5; at += 60 {
				low, high, none := math.Inf(1), math.Inf(-1), false // none: a minute without such calls
				to, n, pace := s.counted(t, server, at)
				for last := min(at-7, to); last <= max(at, to); last++ {
					for length := min(50, n); length <= max(65, n); length++ {
						if !x.counters && (last != at || length < 60 || length > 61) {
							continue
						}
						v := nothing
						switch all := s.together(name, last, length); {
						case x.most:
							for second := last - length + 1; second <= last; second++ {
								if w := x.of(s.at(name, second)); !(w <= v) && !math.IsNaN(w) {
									v = w
								}
							}
						// An average of a second: divide by the number of seconds.
						case x.legend == "" && (strings.HasSuffix(x.where, "Average") ||
							strings.Contains(x.where, "In flight")):
							v = x.of(all) / float64(length)
							if !math.IsNaN(v) && x.counters {
								low, high = min(low, v*pace), max(high, v*pace)
							}
						default:
							v = x.of(all)
						}
						if none = none || math.IsNaN(v); !math.IsNaN(v) {
							low, high = min(low, v), max(high, v)
						}
					}
				}
				got := nothing
				if v := server.queryAt(t, server.withHidden(t, s.expression(t, x.shown, resource)), float64(at)); len(
					v,
				) == 1 {
					got = v[0].Value.value
				}
				line := fmt.Sprintf("%-10s | %-28s | %-11s | to second %3d | shows %-9.5g | was %.5g to %.5g",
					server.name, x.where, cmp.Or(name, "total"), at-s.begin, got, low, high)
				t.Log(line)
				if absent := math.IsNaN(got); absent && !none ||
					!absent && !(none && got == 0) && !(got >= low*(1-x.near)-2e-5 && got <= high*(1+x.near)+2e-5) {
					t.Error("not so: " + line)
				}
			}
		}
	}
}

// alerts logs what fired when.
func (s *story) alerts(t *testing.T, server *server) {
	t.Helper()
	for _, x := range server.query(t, `ALERTS[30m]`) {
		if len(x.Values) > 0 {
			t.Logf("alert | %-32s | %-8s | %-12s | %-8s | second %d to %d", x.Metric["alertname"],
				x.Metric["alertstate"], x.Metric["resource"], x.Metric["severity"],
				x.Values[0].at/1000-s.begin, x.Values[len(x.Values)-1].at/1000-s.begin)
		}
	}
}
