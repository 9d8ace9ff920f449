package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// Features of a Prometheus that accepts deltas, and of a Prometheus whose increase() uses their start times.
const (
	deltas      = plainFeatures
	exactDeltas = startFeatures
)

// TestOTLPDeltaIncrease pushes deltas to a Prometheus that stores and uses their start times, and to a Prometheus that
// does neither. On both, sum_over_time of whole seconds is exact. On the first, increase() is exact, too, also if the
// range begins between two deltas or in a pause of the resource. On the second, increase() is wrong. TestIncrease has
// more formats and features.
func TestOTLPDeltaIncrease(t *testing.T) {
	t.Parallel()
	// All resources are idle for two minutes. In the second of them there are no deltas.
	const burst, pause = 20, 120
	begin := time.Now().Unix() - 2*burst - pause - 10
	p := newPaced(t, time.Unix(begin, 0), []string{"mixed", "rising", "falling"}, collector.Options{})
	p.calls = func(resource int, second int64) count {
		since := int(second - begin)
		if since < 0 || since >= burst && since < burst+pause {
			return count{}
		}
		return count{pass: []int{1 + since*7%13, 1 + since, 200 - since}[resource]}
	}
	var servers []*server
	var stops []func() error
	for _, features := range []string{deltas, exactDeltas} {
		s := prepareServer(t, features, prometheus3)
		s.args = append(s.args, "--web.enable-otlp-receiver", "--enable-feature="+features)
		s.start(t)
		w, err := push.New(p.stats, push.Options{
			Format: push.OTLPDelta, URL: "http://" + s.addr + otlpToPrometheus,
			Labels: map[string]string{"job": "deltas", "instance": "e2e"},
		})
		if err != nil {
			t.Fatal(err)
		}
		servers, stops = append(servers, s), append(stops, w.Start())
	}
	for range 2*burst + pause {
		p.tick()
	}
	end := p.second
	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		// The time of a delta is the end of its second.
		await(t, s, `windowstat_persecond_pass_total{job="deltas",resource="mixed"}`, end+1, deadline)
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			for i, resource := range p.resources {
				checkIncrease(t, s, p, i, []int64{begin, begin + burst + pause}, burst, resource)
			}
		})
	}
}

// checkIncrease compares functions of the deltas of a resource with the calls of the test. The bursts begin at some
// seconds, and each has a length.
func checkIncrease(t *testing.T, s *server, p *paced, i int, bursts []int64, length int64, resource string) {
	t.Helper()
	exact := s.name == exactDeltas
	series := fmt.Sprintf(`windowstat_persecond_pass_total{job="deltas",resource=%q}`, resource)
	// over returns a function of the deltas of the seconds from, to-1 and those between, and the number of calls in
	// these seconds.
	over := func(function string, from, to int64) (got, want float64) {
		for second := from; second < to; second++ {
			want += float64(p.calls(i, second).pass)
		}
		for _, x := range s.queryAt(t, fmt.Sprintf(`%s(%s[%ds])`, function, series, to-from), float64(to)) {
			got += x.Value.value
		}
		return got, want
	}
	const before = 30 // seconds between the start of a range and the first delta
	begin, between := bursts[0], 0
	for _, first := range bursts {
		end := first + length
		for second := first; second < end; second++ {
			if got, want := over("sum_over_time", second, end); got != want {
				t.Errorf("sum_over_time of seconds %d to %d is %v, want %v", second-begin, end-begin, got, want)
			}
			if got, want := over("increase", first-before, second+1); exact && got != want {
				t.Errorf("increase of seconds %d to %d is %v, want %v", first-before-begin, second+1-begin, got, want)
			}
			if got, want := over("increase", second, end); second > first && got != want {
				between++
			}
		}
	}
	got, want := over("increase", begin-before, bursts[len(bursts)-1]+length)
	t.Logf("%s: increase of all is %v, and %v is true; it is wrong in %d of %d ranges that begin between two deltas",
		resource, got, want, between, int64(len(bursts))*(length-1))
	if (got == want) != exact {
		t.Errorf("%s: increase of all is %v, and %v is true", resource, got, want)
	}
	if (between == 0) != exact {
		t.Errorf("%s: increase is wrong in %d ranges that begin between two deltas", resource, between)
	}
}
