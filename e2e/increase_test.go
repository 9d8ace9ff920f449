package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// TestIncrease compares increase() of counters over 1,000 random ranges of whole seconds with the calls that were made.
// The server is killed, and is away for a while, while it receives the seconds. It is a Prometheus with several features,
// and the counters arrive by several formats.
func TestIncrease(t *testing.T) {
	t.Parallel()
	const seconds, ranges = 300, 1000
	begin := time.Now().Unix() - seconds - 10
	p := newPaced(t, time.Unix(begin, 0), []string{"mixed", "rising", "bursts"}, collector.Options{})
	p.calls = func(resource int, second int64) count {
		since := int(second - begin)
		if since < 0 || since >= seconds {
			return count{}
		}
		return count{pass: []int{1 + since*7%13, 1 + since/10, max(0, since%97-90) * 40}[resource]}
	}
	type way struct {
		*server
		job  string
		stop func() error
	}
	var servers []*server
	var ways []way
	for _, features := range []string{
		"otlp-native-delta-ingestion",
		exactDeltas,
		"otlp-native-delta-ingestion,promql-extended-range-selectors,created-timestamp-zero-ingestion",
	} {
		s := prepareServer(t, features, prometheus3)
		s.args = append(s.args, "--web.enable-otlp-receiver", "--enable-feature="+features)
		s.start(t)
		servers = append(servers, s)
		for job, format := range map[string]push.Format{
			"rw2": push.RemoteWrite2, "rw2-deltas": push.RemoteWrite2Delta, "otlp": push.OTLP, "otlp-deltas": push.OTLPDelta,
		} {
			path := "/api/v1/write"
			if format == push.OTLP || format == push.OTLPDelta {
				path = otlpToPrometheus
			}
			w, err := push.New(p.stats, push.Options{
				Format: format, URL: "http://" + s.addr + path, Labels: map[string]string{"job": job, "instance": "e2e"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ways = append(ways, way{s, job, w.Start()})
		}
	}
	arrived := func() {
		deadline := time.Now().Add(catchUp)
		for _, w := range ways {
			await(t, w.server, fmt.Sprintf(`windowstat_persecond_pass_total{job=%q,resource="mixed"}`, w.job), p.second+1, deadline)
		}
	}
	for range seconds / 2 {
		p.tick()
	}
	arrived()
	for _, s := range servers {
		s.end(syscall.SIGKILL)
	}
	for range seconds / 4 {
		p.tick()
	}
	time.Sleep(2 * time.Second)
	for _, s := range servers {
		s.start(t)
	}
	for range seconds / 4 {
		p.tick()
	}
	arrived()
	for _, w := range ways {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}
	for _, w := range ways {
		for _, expression := range []string{"increase(%s[%ds])", "increase(%s[%ds] anchored)", "sum_over_time(%s[%ds])"} {
			if strings.Contains(expression, "anchored") && !strings.Contains(w.name, "extended") {
				continue
			}
			random := rand.New(rand.NewPCG(1, 2))
			wrong, worst := 0, 0.0
			for range ranges {
				i := random.IntN(len(p.resources))
				from := begin + random.Int64N(seconds)
				to := from + 1 + random.Int64N(begin+seconds-from)
				want, got := 0.0, 0.0
				for second := from; second < to; second++ {
					want += float64(p.calls(i, second).pass)
				}
				series := fmt.Sprintf(`windowstat_persecond_pass_total{job=%q,resource=%q}`, w.job, p.resources[i])
				for _, x := range w.queryAt(t, fmt.Sprintf(expression, series, to-from), float64(to)) {
					got += x.Value.value
				}
				if got != want {
					wrong++
					worst = max(worst, math.Abs(got-want)/max(want, 1))
				}
			}
			t.Logf("%s, %s, %s: wrong in %d of %d ranges, by up to %.2f %%", w.name, w.job, expression, wrong, ranges, 100*worst)
		}
	}
}
