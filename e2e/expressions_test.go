package e2e

import "github.com/windowstat/windowstat/exporter/metriclog"

// An expression is a query for the seconds of a fleet: of several targets with the same resource.
//
// A sample with its own timestamp has no stale marker after it. So for five minutes after a target has vanished, or no
// longer calls a resource, a selector continues to find its last second, and adds it to other seconds. A range of just
// under a second finds a second only at its own time. A range of a whole second does not: Prometheus before 3.0
// includes both ends of a range, so at a whole second it would find two. For the same reason longer ranges, and ranges
// of subqueries, end with 999ms.
type expression struct {
	what  string
	right string
	naive string // the obvious but wrong query
	want  func(f fleet, at int64) float64
}

// expressions are evaluated at a whole second or up to half a second after it.
var expressions = []expression{
	{
		"calls of the fleet in this second",
		`sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))`,
		`sum(windowstat_persecond_pass{resource="checkout"})`,
		func(f fleet, at int64) float64 { return f.pass(at) },
	},
	{
		"calls of the fleet in the second twenty seconds ago, which all servers have read by now",
		`sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms] offset 20s))`,
		`sum(windowstat_persecond_pass{resource="checkout"} offset 20s)`,
		func(f fleet, at int64) float64 { return f.pass(at - 20) },
	},
	{
		"how many targets were there in this second",
		`count(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))`,
		`count(windowstat_persecond_pass{resource="checkout"})`,
		func(f fleet, at int64) float64 { return f.targets(at) },
	},
	{
		"calls in the fleet's busiest second of the last five minutes",
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))[4m59s999ms:1s])`,
		`max_over_time(sum(windowstat_persecond_pass{resource="checkout"})[5m:1s])`,
		func(f fleet, at int64) float64 { return highest(at, 300, f.pass) },
	},
	{
		"the same; it is not the sum of the targets' busiest seconds",
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))[4m59s999ms:1s])`,
		`sum(max_over_time(windowstat_persecond_pass{resource="checkout"}[5m]))`,
		func(f fleet, at int64) float64 { return highest(at, 300, f.pass) },
	},
	{
		"the same; it is not one of 301 seconds",
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))[4m59s999ms:1s])`,
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))[5m:1s])`,
		func(f fleet, at int64) float64 { return highest(at, 300, f.pass) },
	},
	{
		"the same of exactly the last ten seconds",
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms]))[9s999ms:1s])`,
		`max_over_time(sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[1s]))[10s:1s])`,
		func(f fleet, at int64) float64 { return highest(at, 10, f.pass) },
	},
	{
		"calls of the fleet in exactly the last ten seconds",
		`sum(sum_over_time(windowstat_persecond_pass{resource="checkout"}[9s999ms]))`,
		`sum(sum_over_time(windowstat_persecond_pass{resource="checkout"}[10s]))`,
		func(f fleet, at int64) float64 { return total(at, 10, f.pass) },
	},
	{
		"calls a second of the fleet, on average over the last ten",
		`sum(sum_over_time(windowstat_persecond_pass{resource="checkout"}[9s999ms])) / 10`,
		`sum(avg_over_time(windowstat_persecond_pass{resource="checkout"}[9s999ms]))`,
		func(f fleet, at int64) float64 { return total(at, 10, f.pass) / 10 },
	},
	{
		"in how many seconds of the last five minutes the fleet had more than 400 calls",
		`count_over_time((sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms])) > ` +
			`400)[4m59s999ms:1s])`,
		`count_over_time((sum(windowstat_persecond_pass{resource="checkout"}) > 400)[5m:1s])`,
		busy,
	},
	{
		"the share of refused calls in the second of the last five minutes where it was highest",
		`max_over_time((sum(last_over_time(windowstat_persecond_block{resource="checkout"}[999ms])) / ` +
			`sum(last_over_time({__name__=~"windowstat_persecond_(pass|block)",` +
			`resource="checkout"}[999ms])))[4m59s999ms:1s])`,
		`max_over_time((sum(windowstat_persecond_block{resource="checkout"}) / ` +
			`sum({__name__=~"windowstat_persecond_(pass|block)",resource="checkout"}))[5m:1s])`,
		func(f fleet, at int64) float64 {
			return highest(at, 300, func(second int64) float64 {
				calls := f.block(second) + f.pass(second)
				if calls == 0 {
					return 0
				}
				return f.block(second) / calls
			})
		},
	},
	{
		"the same; they are not 301 seconds",
		`count_over_time((sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms])) > ` +
			`400)[4m59s999ms:1s])`,
		`count_over_time((sum(last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms])) > 400)[5m:1s])`,
		busy,
	},
}

// ofTargets are expressions with one result for each target.
var ofTargets = []expression{
	{
		"how many of the last ten minutes' seconds of a target are there",
		`count_over_time(windowstat_persecond_pass{resource="checkout"}[9m59s999ms])`,
		`count_over_time(windowstat_persecond_pass{resource="checkout"}[10m])`,
		func(f fleet, at int64) float64 { return total(at, 600, f.targets) },
	},
	{
		"the newest second of a target",
		`last_over_time(windowstat_persecond_pass{resource="checkout"}[1h])`,
		`last_over_time(windowstat_persecond_pass{resource="checkout"}[999ms])`,
		func(f fleet, at int64) float64 {
			for f.targets(at) == 0 {
				at--
			}
			return f.pass(at)
		},
	},
}

// busy is the number of seconds of the last five minutes with more than 400 calls.
func busy(f fleet, at int64) float64 {
	return total(at, 300, func(second int64) float64 {
		if f.pass(second) > 400 {
			return 1
		}
		return 0
	})
}

// A fleet holds the rows of one resource in the metric logs of some targets, by address and Unix second.
type fleet map[string]map[int64]metriclog.Row

func (f fleet) pass(second int64) (sum float64) {
	for _, target := range f {
		sum += float64(target[second].Pass)
	}
	return sum
}

func (f fleet) block(second int64) (sum float64) {
	for _, target := range f {
		sum += float64(target[second].Block)
	}
	return sum
}

// targets returns the number of targets with a row of the second. Calls were made in all of them.
func (f fleet) targets(second int64) (n float64) {
	for _, target := range f {
		if _, ok := target[second]; ok {
			n++
		}
	}
	return n
}

// highest returns the highest value of the n seconds that end with at.
func highest(at, n int64, of func(int64) float64) (most float64) {
	for second := at - n + 1; second <= at; second++ {
		most = max(most, of(second))
	}
	return most
}

// total returns the sum over the n seconds that end with at.
func total(at, n int64, of func(int64) float64) (sum float64) {
	for second := at - n + 1; second <= at; second++ {
		sum += of(second)
	}
	return sum
}
