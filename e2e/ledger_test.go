package e2e

import (
	"strings"
	"testing"
)

// Resources with these names are checked second by second, and all resources are checked together.
const lookedAt = `resource=~".*[05]0"`

// A ledger holds the calls that paced statistics have made.
type ledger struct {
	resources int
	sample    map[string]map[int64]count // of the resources that are checked separately
	sums      map[int64]count            // of all resources
}

// newLedger creates a ledger and sets the calls: a different number in each second of each resource.
func newLedger(p *paced) *ledger {
	x := &ledger{len(p.resources), map[string]map[int64]count{}, map[int64]count{}}
	p.calls = func(resource int, second int64) count {
		n := resource*31 + int(second)*17 + resource*int(second)%101
		return count{pass: 1 + n%4, block: n / 4 % 3}
	}
	p.ticked = func(resource int, second int64, c count) {
		sum := x.sums[second]
		x.sums[second] = count{sum.pass + c.pass, sum.block + c.block}
		name := p.resources[resource]
		if !strings.HasSuffix(name, "00") && !strings.HasSuffix(name, "50") {
			return
		}
		if x.sample[name] == nil {
			x.sample[name] = map[int64]count{}
		}
		x.sample[name][second] = c
	}
	return x
}

// check compares the values of a metric in a server with the ledger.
func (x *ledger) check(t *testing.T, s *server, metric string, end int64, of func(count) int) {
	t.Helper()
	want := values{}
	for resource, seconds := range x.sample {
		want[resource] = map[int64]float64{}
		for second, c := range seconds {
			want[resource][second] = float64(of(c))
		}
	}
	n := checkSamples(t, s, metric+"{"+lookedAt+"}[30m]", want, end)

	sums := values{"": {}}
	for second, c := range x.sums {
		sums[""][second] = float64(of(c))
	}
	n += checkSamples(t, s, "sum(last_over_time("+metric+"[999ms]))[30m:1s]", sums, end)
	if got, want := s.number(t, "sum(count_over_time("+metric+"[30m]))"),
		len(x.sums)*x.resources; got != float64(want) {
		t.Errorf("%s has %v samples of %s; it should have %d", s.name, got, metric, want)
	}
	t.Logf("%s: %d samples and sums of %s", s.name, n, metric)
}
