package e2e

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/push"
)

// Features of a Prometheus that make increase() exact.
const (
	plainFeatures = "otlp-native-delta-ingestion" // without this feature a Prometheus refuses deltas by OTLP
	startFeatures = plainFeatures + ",st-storage,use-start-timestamps"
	// With the modifier anchored, and with zeros at start timestamps.
	anchoredFeatures = plainFeatures + ",promql-extended-range-selectors,created-timestamp-zero-ingestion"
)

// TestIncrease compares functions of counters over 1,000 random ranges of whole seconds with the calls that were made.
// The counters arrive by remote write 2.0 and by OTLP, as cumulative values and as deltas. Each server is killed, and
// is down while a quarter of the seconds are counted.
//
// The test has a row for each version, features, format and function. It fails if an exact row has a wrong range. It
// also fails if a row that is not exact has no wrong range, because docs/seconds.md has the same table. It logs the
// errors.
func TestIncrease(t *testing.T) {
	t.Parallel()
	const length, ranges = 300, 1000
	begin := time.Now().Unix() - length - 10
	p := newPaced(t, time.Unix(begin, 0), []string{"mixed", "rising", "bursts"}, collector.Options{})
	p.calls = func(resource int, second int64) count {
		since := int(second - begin)
		if since < 0 || since >= length {
			return count{}
		}
		return count{pass: []int{1 + since*7%13, 1 + since/10, max(0, since%97-90) * 40}[resource]}
	}
	formats := map[string]push.Format{
		"2.0": push.RemoteWrite2, "2.0 deltas": push.RemoteWrite2Delta, "OTLP": push.OTLP,
		"OTLP deltas": push.OTLPDelta,
	}
	// A zero at the start of each delta, or at the start of each cumulative counter.
	zeros := []string{
		"increase 2.0 deltas", "increase OTLP deltas",
		"anchored 2.0 deltas", "anchored OTLP deltas", "anchored 2.0", "anchored OTLP",
	}
	servers := []*increaseServer{
		{program: prometheus3, features: plainFeatures},
		{program: prometheus3, features: startFeatures, exact: []string{"increase OTLP deltas"}},
		{program: prometheus3, features: anchoredFeatures, exact: zeros},
		{
			program:  prometheus316,
			features: startFeatures,
			exact:    []string{"increase 2.0 deltas", "increase OTLP deltas"},
		},
		{program: prometheus316, features: anchoredFeatures, exact: zeros},
		// VictoriaMetrics ignores start timestamps. Its increase() does not need them, because it includes the last
		// sample before the range.
		{program: victoria, exact: []string{"increase 2.0", "increase OTLP"}},
	}
	for i, s := range servers {
		s.server = prepareServer(t, fmt.Sprint(s.program.name, "-", i), s.program)
		s.formats, s.kill = maps.Clone(formats), syscall.SIGKILL
		otlpPath := otlpToPrometheus
		if s.isVictoria {
			// VictoriaMetrics stores the latest seconds at a regular exit.
			otlpPath, s.kill = otlpToVictoria, syscall.SIGTERM
			delete(s.formats, "2.0 deltas")
			delete(s.formats, "OTLP deltas")
		} else {
			s.args = append(s.args, "--web.enable-otlp-receiver", "--enable-feature="+s.features)
		}
		s.start(t)
		for job, format := range s.formats {
			path := "/api/v1/write"
			if strings.HasPrefix(job, "OTLP") {
				path = otlpPath
			}
			w, err := push.New(p.stats, push.Options{
				Format: format, URL: "http://" + s.addr + path,
				Labels: map[string]string{"job": job, "instance": "e2e"},
			})
			if err != nil {
				t.Fatal(err)
			}
			s.stop = append(s.stop, w.Start())
		}
	}
	ticks := func(n int) {
		for range n {
			p.tick()
		}
	}
	arrived := func() {
		deadline := time.Now().Add(catchUp)
		for _, s := range servers {
			for job := range s.formats {
				series := fmt.Sprintf(`windowstat_persecond_pass_total{job=%q,resource="mixed"}`, job)
				await(t, s.server, series, p.second+1, deadline)
			}
		}
	}
	ticks(length / 2)
	arrived()
	for _, s := range servers {
		s.end(s.kill)
	}
	ticks(length / 4)
	time.Sleep(2 * time.Second)
	for _, s := range servers {
		s.start(t)
	}
	ticks(length / 4)
	arrived()
	for _, s := range servers {
		for _, stop := range s.stop {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		t.Run(s.program.name+" with "+s.features, func(t *testing.T) {
			for job := range s.formats {
				s.checkRanges(t, p, job, begin, length, ranges)
			}
		})
	}
}

// increaseServer is a server with features, and the rows of the table that are exact with these features: functions and
// formats.
type increaseServer struct {
	*server
	program  program
	features string
	exact    []string
	formats  map[string]push.Format // by job
	kill     syscall.Signal
	stop     []func() error
}

// checkRanges compares each function of the counters of a job with the calls that were made in random ranges.
func (s *increaseServer) checkRanges(t *testing.T, p *paced, job string, begin, length int64, ranges int) {
	t.Helper()
	functions := map[string]string{"increase": "increase(%s[%ds])"}
	if strings.HasSuffix(job, "deltas") {
		functions["sum_over_time"] = "sum_over_time(%s[%ds])"
	}
	if s.features == anchoredFeatures {
		functions["anchored"] = "increase(%s[%ds] anchored)"
	}
	for name, expression := range functions {
		random := rand.New(rand.NewPCG(1, 2))
		wrong, median := 0, []float64{}
		for range ranges {
			i, from := random.IntN(len(p.resources)), begin+random.Int64N(length)
			to := from + 1 + random.Int64N(begin+length-from)
			want, got := 0.0, 0.0
			for second := from; second < to; second++ {
				want += float64(p.calls(i, second).pass)
			}
			series := fmt.Sprintf(`windowstat_persecond_pass_total{job=%q,resource=%q}`, job, p.resources[i])
			for _, x := range s.queryAt(t, fmt.Sprintf(expression, series, to-from), float64(to)) {
				got += x.Value.value
			}
			if got != want {
				wrong++
			}
			median = append(median, math.Abs(got-want)/max(want, 1))
		}
		slices.Sort(median)
		t.Logf("%s of %s: wrong in %d of %d ranges, by %.2f %% in half of the ranges and by up to %.2f %%",
			name, job, wrong, ranges, 100*median[ranges/2], 100*median[ranges-1])
		exact := name == "sum_over_time" || slices.Contains(s.exact, name+" "+job)
		if (wrong == 0) != exact {
			t.Errorf("%s of %s is wrong in %d ranges", name, job, wrong)
		}
	}
}
