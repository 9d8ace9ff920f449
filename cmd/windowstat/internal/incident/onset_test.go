package incident

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
)

// second has the mean numbers of a resource in a second of a synthetic log.
type second struct{ pass, block, exception, rtMs, inFlight float64 }

// service writes the log of an application with random seconds of its resources. noise and change modify the means.
type service struct {
	app       string
	resources []string
	usual     map[string]second
	noise     func(r *rand.Rand, at int, name string, x *second)
	change    func(at int, name string, x *second)
}

// epoch is the first second of the range. The logs begin lead seconds before.
var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

const lead = 900

// poisson returns a random number of calls with the mean.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 50 {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, p := 0., math.Exp(-mean)
	for x := r.Float64(); x > p; x *= r.Float64() {
		n++
	}
	return n
}

// write writes the log of a service, which ends the given number of seconds after epoch.
func (s *service) write(t testing.TB, dir string, seconds int, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 36))
	var b bytes.Buffer
	for at := -lead; at < seconds; at++ {
		stamp := epoch.Add(time.Duration(at) * time.Second)
		head := fmt.Sprintf("%d|%s|", stamp.UnixMilli(), stamp.Format(time.DateTime))
		total := int64(0)
		for _, name := range s.resources {
			x := s.usual[name]
			if s.noise != nil {
				s.noise(r, at, name, &x)
			}
			if s.change != nil {
				s.change(at, name, &x)
			}
			pass, block := int64(poisson(r, x.pass)), int64(poisson(r, x.block))
			complete := pass
			if x.inFlight > 100 { // calls that hang do not complete
				complete = 0
			}
			rt := 0.
			for range complete { // a long tail, which few calls do not average out
				rt += x.rtMs * math.Exp(0.6*r.NormFloat64()-0.18)
			}
			if complete > 0 {
				rt /= float64(complete)
			}
			exception := min(int64(poisson(r, x.exception)), complete)
			inFlight := max(min(pass, 1), int64(poisson(r, x.inFlight+x.pass*x.rtMs/1000)))
			total += pass
			if pass+block+inFlight > 0 {
				fmt.Fprintf(&b, "%s%s|%d|%d|%d|%d|%d|0|%d|0\n", head, name, pass, block, complete, exception, int64(rt),
					inFlight)
			}
		}
		if total > 0 {
			fmt.Fprintf(&b, "%s%s|%d|0|%d|0|0|0|0|0\n", head, collector.InboundTotal, total, total)
		}
	}
	path := filepath.Join(dir, s.app+"-metrics.log."+epoch.Format(time.DateOnly))
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read reads the given number of seconds from epoch on.
func read(t testing.TB, seconds int, dirs ...string) *Seconds {
	t.Helper()
	all, err := logquery.Select(logquery.Source{
		Dirs: dirs, Zone: time.UTC, From: epoch.Format(time.RFC3339),
		To: epoch.Add(time.Duration(seconds-1) * time.Second).Format(time.RFC3339),
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	s, err := Read(t.Context(), all, &stderr)
	if err != nil || stderr.Len() > 0 {
		t.Fatal(err, stderr.String())
	}
	return s
}

// order returns the resources of onsets in their order, with = between resources of the same rank.
func order(all []Onset) string {
	var b strings.Builder
	for i, o := range all {
		switch {
		case i == 0:
		case all[i-1].Rank == o.Rank:
			b.WriteString(" = ")
		default:
			b.WriteString(" < ")
		}
		fmt.Fprintf(&b, "%s %s+%d", o.Resource, o.Changes[0].Number, int(o.Time.Sub(epoch).Seconds()))
	}
	return b.String()
}

// shop returns a service with resources of different kinds.
func shop() *service {
	return &service{
		app: "shop", resources: []string{"home", "search", "orders", "pay", "db", "rare", "batch", "sale"},
		usual: map[string]second{
			"home": {
				200,
				0,
				0,
				2,
				0,
			}, "search": {40, 0, 0.2, 12, 0}, "orders": {20, 0, 0.1, 120, 0}, "pay": {30, 0, 3, 20, 0},
			"db": {90, 0, 0, 3, 0}, "rare": {0.4, 0, 0, 60, 0}, "batch": {0, 0, 0, 40, 0}, "sale": {0, 0, 0, 1, 0},
		},
		noise: func(r *rand.Rand, at int, name string, x *second) {
			at += lead
			switch {
			case name == "batch" && at%60 < 12: // a job in each minute
				x.pass = 150
			case name == "sale" && at%10 == 4: // a burst in each ten seconds
				x.pass, x.block = 200, 50
			}
		},
	}
}

// step is a change of a resource from a second on.
type step struct {
	host, resource string
	at             int
	apply          func(x *second, since int)
}

// incident is a synthetic incident, with the order that Onsets must find.
type incident struct {
	name   string
	steps  []step
	offset time.Duration // between the clocks of the hosts
	want   string
}

// incidents has ten incidents. Each has the logs of two services on different hosts.
var incidents = []incident{
	{"a database hangs, and its callers wait", []step{
		{"shop", "db", 100, func(x *second, since int) { x.inFlight += 90 * float64(since+1) }},
		{"shop", "orders", 101, func(x *second, since int) { x.inFlight += 20 * float64(since+1) }},
		{"shop", "home", 106, func(x *second, _ int) { x.pass = 0 }},
	}, 0, "db in_flight_max+100 < orders in_flight_max+101 < home pass+106"},
	{"a limit is too low", []step{
		{"shop", "search", 60, func(x *second, _ int) { x.pass, x.block = 10, 30 }},
		{"shop", "db", 61, func(x *second, _ int) { x.pass = 40 }},
	}, 0, "search pass+60 < db pass+61"},
	{"a bank fails, and clients retry", []step{
		{"shop", "pay", 30, func(x *second, _ int) { x.exception = x.pass }},
		{"shop", "pay", 32, func(x *second, _ int) { x.pass *= 4; x.exception = x.pass }},
		{"bank", "transfer", 29, func(x *second, _ int) { x.exception = x.pass }},
	}, 50 * time.Millisecond, "transfer exception+29 = pay exception+30"},
	{"a disk gets slow", []step{
		{"shop", "db", 200, func(x *second, _ int) { x.rtMs = 40 }},
		{"shop", "home", 203, func(x *second, _ int) { x.rtMs = 45 }},
	}, 0, "db rt_avg_ms+200 < home rt_avg_ms+203"},
	{"clients stop calling", []step{
		{"shop", "home", 50, func(x *second, _ int) { x.pass = 0 }},
		{"shop", "search", 50, func(x *second, _ int) { x.pass = 0 }},
		{"shop", "db", 52, func(x *second, _ int) { x.pass = 5 }},
	}, 0, "home pass+50 = search pass+50 < db pass+52"},
	{"orders fail", []step{
		{"shop", "orders", 10, func(x *second, _ int) { x.exception = 18 }},
	}, 0, "orders exception+10"},
	{"traffic rises fivefold", []step{
		{"shop", "search", 300, func(x *second, _ int) { x.pass *= 5 }},
		{"shop", "db", 305, func(x *second, _ int) { x.rtMs = 30 }},
		{"shop", "orders", 310, func(x *second, _ int) { x.block = 15 }},
	}, 0, "search pass+300 < db rt_avg_ms+305 < orders block+310"},
	{"another host changes first", []step{
		{"bank", "ledger", 100, func(x *second, _ int) { x.rtMs = 90 }},
		{"shop", "pay", 103, func(x *second, _ int) { x.rtMs = 110 }},
	}, 50 * time.Millisecond, "ledger rt_avg_ms+100 < pay rt_avg_ms+103"},
	{"the clocks do not show which host changes first", []step{
		{"bank", "ledger", 101, func(x *second, _ int) { x.rtMs = 90 }},
		{"shop", "pay", 103, func(x *second, _ int) { x.rtMs = 110 }},
	}, 1500 * time.Millisecond, "ledger rt_avg_ms+101 = pay rt_avg_ms+103"},
	{"a rare resource gets calls, and a job stops", []step{
		{"shop", "rare", 120, func(x *second, _ int) { x.pass = 60 }},
		{"bank", "transfer", 180, func(x *second, _ int) { x.pass = 0 }},
	}, 50 * time.Millisecond, "rare pass+120 < transfer pass+180"},
}

// write writes the logs of both services with the incident, and returns a directory for each host.
func (i *incident) write(t testing.TB, seconds int, seed uint64) (dirs []string) {
	bank := &service{
		app: "bank", resources: []string{"transfer", "ledger"},
		usual: map[string]second{"transfer": {25, 0, 0.1, 30, 0}, "ledger": {60, 0, 0, 8, 0}},
	}
	for _, s := range []*service{shop(), bank} {
		s.change = func(at int, name string, x *second) {
			for _, step := range i.steps {
				if step.host == s.app && step.resource == name && at >= step.at {
					step.apply(x, at-step.at)
				}
			}
		}
		dir := t.TempDir()
		s.write(t, dir, seconds, seed)
		dirs = append(dirs, dir)
	}
	return dirs
}

// Onsets finds the changes of synthetic incidents in the right order and second. It finds no onset in hours without
// changes, which have response times with long tails, a job in each minute, and bursts.
func TestOnsets(t *testing.T) {
	for _, i := range incidents {
		if got := order(read(t, 600, i.write(t, 600, 1)...).Onsets(i.offset)); got != i.want {
			t.Errorf("%s:\n%s\nwant\n%s", i.name, got, i.want)
		}
	}
	// A range may end with the second of a change. The seconds after it confirm the change.
	if got := order(read(t, 101, incidents[0].write(t, 600, 1)...).Onsets(0)); got != "db in_flight_max+100" {
		t.Errorf("at the end of a range: %s", got)
	}
	for seed := range uint64(3) {
		if all := read(t, 3600, (&incident{}).write(t, 3600, seed)...).Onsets(0); len(all) > 0 {
			t.Errorf("calm hour %d: %s", seed, order(all))
		}
	}
}
