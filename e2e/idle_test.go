package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

const (
	burstEvery = 70                // seconds
	idlePast   = 7*burstEvery - 8  // seconds in fast motion, until shortly before a burst
	idleEnd    = 7*burstEvery + 20 // end of the run
)

// TestIdle runs servers that read two targets whose resources are idle most of the time: one resource is called in
// bursts, one only at the beginning, one never. The first minutes pass in fast motion, and the servers read them from
// the history. All documented expressions must be right although idle seconds are omitted.
func TestIdle(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-idlePast * time.Second)
	resources := []string{"checkout", "once", "never", "steady"}
	calls := func(own int) func(resource int, second int64) count {
		return func(resource int, second int64) count {
			k := int(second - begin.Unix())
			switch {
			case resource == 0 && k%burstEvery == 0:
				return count{pass: 430 + own + k, block: 30 + own}
			case resource == 0 && k%burstEvery == 3+own || resource == 1 && k == 0:
				return count{pass: 7, block: own}
			case resource == 3:
				return count{pass: 3, block: k % 3}
			}
			return count{}
		}
	}
	var targets []*paced
	var addresses []string
	logs := fleet{}
	for own := range 2 {
		p := newPaced(t, begin, resources, collector.Options{})
		rows := map[int64]metriclog.Row{}
		p.calls = calls(own)
		p.ticked = func(resource int, second int64, c count) {
			if resource == 0 {
				rows[second] = metriclog.Row{Pass: int64(c.pass), Block: int64(c.block)}
			}
		}
		page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t, "127.0.0.1:0")
		serve(t, page, l, page.ConnState)
		address := l.Addr().String()
		targets, addresses = append(targets, p), append(addresses, address)
		logs[address] = rows
	}
	a, b := targets[0], targets[1]
	for range idlePast {
		a.tick()
		b.tick()
	}
	servers := startServers(t,
		job{name: "idle", path: secondsPath, targets: addresses, interval: 5 * time.Second, histogram: "classic"})
	a.live(func() bool {
		b.tick()
		return a.second < begin.Unix()+idleEnd-1
	})
	a.tick()

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			for own, address := range addresses {
				await(t, s, fmt.Sprintf("windowstat_persecond_pass{instance=%q}", address), a.second, deadline)
				checkIdle(t, s, address, resources, calls(own), begin.Unix(), a.second)
			}
			for _, x := range expressions {
				checkIdleExpression(t, s, x, logs, begin.Unix())
			}
			checkIdleHistogram(t, s, logs, begin.Unix())
			const refused, passed = `sum(last_over_time(windowstat_persecond_block{resource="checkout"}[999ms]))`,
				`sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))`
			for expression, want := range map[string]int{refused: 0, refused + " or 0 * " + passed: 1} {
				if got := s.queryAt(t, expression, float64(begin.Unix()+burstEvery-1)); len(got) != want {
					t.Errorf("where all are idle, %s has %d results; it should have %d", expression, len(got), want)
				}
			}
			for _, resource := range resources {
				n := s.valueAt(t,
					fmt.Sprintf(`min(count_over_time(windowstat_persecond_pass{resource=%q}[4m59s999ms]))`, resource),
					float64(a.second-1))
				if n != 300 {
					t.Errorf("%s has %v seconds in five minutes", resource, n)
				}
			}
			checkCounters(t, s)
		})
	}
}

// checkIdle compares every second. Passes must always exist, and refusals until a minute after the last call.
func checkIdle(t *testing.T, s *server, address string, resources []string,
	calls func(resource int, second int64) count, begin, end int64,
) {
	t.Helper()
	passes, blocks := values{}, values{}
	for i, resource := range resources {
		passes[resource], blocks[resource] = map[int64]float64{}, map[int64]float64{}
		last := begin - 1
		for second := begin; second < end; second++ {
			c := calls(i, second)
			if c != (count{}) {
				last = second
			}
			passes[resource][second] = float64(c.pass)
			if second-last <= stillFor {
				blocks[resource][second] = float64(c.block)
			}
		}
	}
	n := checkSamples(t, s, fmt.Sprintf("windowstat_persecond_pass{instance=%q}[20m]", address), passes, end)
	m := checkSamples(t, s, fmt.Sprintf("windowstat_persecond_block{instance=%q}[20m]", address), blocks, end)
	t.Logf("%s: %d samples of passes, %d of refusals", s.name, n, m)
}

// checkIdleExpression evaluates an expression around bursts, and where all are idle.
func checkIdleExpression(t *testing.T, s *server, x expression, f fleet, begin int64) {
	t.Helper()
	for _, k := range []int64{
		0, 4, 59, 62, 65, 69, 70, 71, 73, 74, 138, 140, 345, 7*burstEvery - 2, 7*burstEvery - 1,
		7 * burstEvery, 7*burstEvery + 3, idleEnd - 1,
	} {
		want := x.want(f, begin+k)
		for _, part := range []float64{0, 0.5} {
			at := float64(begin+k) + part
			if got := s.valueAt(t, x.right, at); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %v s from the beginning: %s is %v; it should be %v", x.what,
					float64(k)+part, x.right, got, want)
			}
		}
	}
}

// checkIdleHistogram checks the calls of single seconds in the histogram. It also checks the calls of steps in the
// graph of the histogram, where the resource restarts after an idle time.
func checkIdleHistogram(t *testing.T, s *server, f fleet, begin int64) {
	t.Helper()
	const h = `windowstat_persecond_rt_seconds_bucket{resource="checkout",le="+Inf"}`
	inSecond := fmt.Sprintf("sum(last_over_time(%s[999ms]) - last_over_time(%s[999ms] offset 1s))", h, h)
	inStep := fmt.Sprintf("sum(last_over_time(%s[15s]) - min_over_time(%s[15s1ms]))", h, h)
	for second := begin + 7*burstEvery - 2; second < begin+idleEnd; second++ {
		if got, want := s.valueAt(t, inSecond, float64(second+1)), f.pass(second); got != want {
			t.Errorf("second %d has %v calls in the histogram; it should be %v", second-begin, got, want)
		}
		if got, want := s.valueAt(t, inStep, float64(second+1)), total(second, 15, f.pass); got != want {
			t.Errorf("%d calls until second %d, but %v in the histogram", int(want), second-begin, got)
		}
	}
}
