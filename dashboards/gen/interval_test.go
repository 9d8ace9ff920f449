package main

import (
	"strings"
	"testing"
	"time"
)

const (
	scrapes    = 15 * time.Second // the interval of the data source in ../provisioning, and Grafana's default
	safePoints = 11000            // Prometheus refuses more
)

// An asked describes the conditions of a panel's query.
type asked struct {
	panel, target time.Duration // least intervals, 0 for none
	span          time.Duration // the time range
	points        int64         // capacity of the panel
}

// A rule describes how versions of Grafana compute $__interval, which equals the step, and $__rate_interval.
type rule struct {
	versions       string
	step, interval func(asked) time.Duration
}

var rules = []rule{
	{"10.0 to 10.2.5", minStep, func(a asked) time.Duration { return max(minStep(a)+scrapes, 4*scrapes) }},
	{"10.2.6 to 12", minStep, overTarget},
	{"13", func(a asked) time.Duration {
		if a.target > 0 {
			return a.target
		}
		return minStep(a)
	}, overTarget},
}

// minStep returns the width of a point, or the minimum interval of the target, the panel or the data source if that is
// longer.
func minStep(a asked) time.Duration {
	least := requested(a)
	if a.target > 0 {
		least = a.target
	}
	return max(nice(a.span/time.Duration(a.points)), least, nice(a.span/safePoints))
}

// requested returns the interval that the browser requests. The browser ignores the interval of the target.
func requested(a asked) time.Duration {
	least := a.panel
	if least == 0 {
		least = scrapes
	}
	return max(nice(a.span/time.Duration(a.points)), least)
}

// overTarget uses the minimum interval of a target as the scrape interval.
func overTarget(a asked) time.Duration {
	of := scrapes
	if a.target > 0 {
		of = a.target
	}
	return max(requested(a)+of, 4*of)
}

// nice rounds to a usual interval.
func nice(d time.Duration) time.Duration {
	for _, to := range []struct{ below, is time.Duration }{
		{1500 * time.Millisecond, time.Second},
		{3500 * time.Millisecond, 2 * time.Second},
		{7500 * time.Millisecond, 5 * time.Second},
		{12500 * time.Millisecond, 10 * time.Second},
		{17500 * time.Millisecond, 15 * time.Second},
		{25 * time.Second, 20 * time.Second},
		{45 * time.Second, 30 * time.Second},
		{90 * time.Second, time.Minute},
		{210 * time.Second, 2 * time.Minute},
		{450 * time.Second, 5 * time.Minute},
		{750 * time.Second, 10 * time.Minute},
		{25 * time.Minute, 20 * time.Minute},
		{45 * time.Minute, 30 * time.Minute},
		{90 * time.Minute, time.Hour},
	} {
		if d < to.below {
			return to.is
		}
	}
	return d.Round(time.Hour)
}

// TestRulesOfGrafana checks the rules against values observed in Grafana. Queries must not set an interval of the
// target.
func TestRulesOfGrafana(t *testing.T) {
	for _, c := range []struct {
		asked          asked
		step, interval [3]time.Duration // by rule
	}{
		{
			asked{0, 0, 15 * time.Minute, 800},
			[3]time.Duration{scrapes, scrapes, scrapes},
			[3]time.Duration{time.Minute, time.Minute, time.Minute},
		},
		{
			asked{time.Second, 0, 15 * time.Minute, 800},
			[3]time.Duration{time.Second, time.Second, time.Second},
			[3]time.Duration{time.Minute, time.Minute, time.Minute},
		},
		{
			asked{time.Second, time.Second, 15 * time.Minute, 800},
			[3]time.Duration{time.Second, time.Second, time.Second},
			[3]time.Duration{time.Minute, 4 * time.Second, 4 * time.Second},
		},
		{
			asked{time.Second, time.Second, 24 * time.Hour, 800},
			[3]time.Duration{2 * time.Minute, 2 * time.Minute, time.Second},
			[3]time.Duration{135 * time.Second, 121 * time.Second, 121 * time.Second},
		},
	} {
		for i, r := range rules {
			if step, interval := r.step(c.asked), r.interval(c.asked); step != c.step[i] || interval != c.interval[i] {
				t.Errorf("%s, %v: step %v, $__rate_interval %v; want %v, %v",
					r.versions, c.asked, step, interval, c.step[i], c.interval[i])
			}
		}
	}
}

// TestIntervalsFitWhatIsAsked checks every query of a graph in every version, from five minutes to a week. The range of
// a rate covers four scrapes, and the scrapes between two points. Graphs show single seconds if they are wide enough.
func TestIntervalsFitWhatIsAsked(t *testing.T) {
	for name, d := range read(t) {
		for _, p := range panels(d) {
			for _, q := range p.Targets {
				if q.Instant {
					continue
				}
				for _, span := range []time.Duration{
					5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
					24 * time.Hour, 7 * 24 * time.Hour,
				} {
					for _, points := range []int64{240, 500, 1000, 1900} {
						a := asked{parsed(t, p.Interval), parsed(t, q.Interval), span, points}
						checkIntervals(t, name+", "+p.Title, q.Expr, a)
					}
				}
			}
		}
	}
}

func checkIntervals(t *testing.T, where, expr string, a asked) {
	t.Helper()
	for _, r := range rules {
		step, interval := r.step(a), r.interval(a)
		if a.span/step > safePoints {
			t.Errorf("%s, Grafana %s, %v: %d points", where, r.versions, a, a.span/step)
		}
		if strings.Contains(expr, "$__rate_interval") && (interval < 4*scrapes || interval < step) {
			t.Errorf("%s, Grafana %s, %v: a rate over %v, every %v", where, r.versions, a, interval, step)
		}
		// Values over the range of a rate, such as its slowest call, have the step of the rate.
		ofStep := strings.Contains(expr, "$__interval") || strings.Contains(expr, "[999ms]")
		if ofStep && strings.Contains(expr, "windowstat_persecond_") &&
			step != max(time.Second, nice(a.span/time.Duration(a.points))) {
			t.Errorf("%s, Grafana %s, %v: seconds have a step of %v", where, r.versions, a, step)
		}
	}
}

func parsed(t *testing.T, interval string) time.Duration {
	t.Helper()
	if interval == "" {
		return 0
	}
	d, err := time.ParseDuration(interval)
	if err != nil {
		t.Error(err)
	}
	return d
}
