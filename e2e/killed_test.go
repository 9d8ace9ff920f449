package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// killedTimes is the number of kills in [TestKilledPushes], unless $WINDOWSTAT_E2E_KILLS sets another number.
const killedTimes = 5

// TestKilledPushes repeatedly kills a service at arbitrary times. The service pushes through proxies that fail before
// and after the server has stored a request, or block everything from one kill until after the next. At the end every
// server must have every second of the metric log once: later processes send the seconds that a killed process did not
// send.
func TestKilledPushes(t *testing.T) {
	t.Parallel()
	kills := killedTimes
	if s := os.Getenv("WINDOWSTAT_E2E_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	type way struct {
		*server
		job job
	}
	var ways []way
	var proxies []*weather
	var away atomic.Bool
	push := func(s *server, job, path string) {
		x := &weather{bad: func(n int64, w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) {
			if away.Load() {
				panic(http.ErrAbortHandler)
			}
			stormy(n, w, r, forward)
		}}
		c.push += " http://" + through(t, s, x).addr + path
		ways, proxies = append(ways, way{s, jobNamed(job)}), append(proxies, x)
	}
	for name, p := range map[string]program{
		"prometheus-3": prometheus3,
		"prometheus-2": prometheus2, "victoria": victoria,
	} {
		s := prepareServer(t, name, p)
		if s.isVictoria {
			s.args = append(s.args, "-dedup.minScrapeInterval=1ms") // removes samples that are sent twice
		}
		s.start(t)
		push(s, clusterJob, "/api/v1/write")
		if s.isVictoria {
			push(s, importedJob, "/api/v1/import/prometheus")
		}
	}
	t.Cleanup(c.kill)
	var killed []int64
	for n := range kills {
		c.start(t)
		away.Store(n%4 == 2)
		time.Sleep(2*time.Second + rand.N(6*time.Second))
		if n%4 == 1 {
			away.Store(true)
			time.Sleep(rand.N(3 * time.Second))
		}
		c.kill()
		killed = append(killed, time.Now().Unix())
		time.Sleep(rand.N(1500 * time.Millisecond))
	}
	for _, x := range proxies {
		x.clear.Store(true)
	}
	c.start(t)
	time.Sleep(5 * time.Second)
	end := time.Now().Unix() - 1
	c.awaitLogged(t, end)
	rows := c.rows(t, end, 3*kills)
	deadline := time.Now().Add(catchUp)
	for _, x := range ways {
		t.Run(x.name+"/"+x.job.name, func(t *testing.T) {
			await(t, x.server, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, x.job.name), end,
				deadline)
			samples := 0
			for _, f := range fields {
				samples += checkPushed(t, x.server, x.job, f, rows, killed, end)
			}
			t.Logf("%d samples", samples)
		})
	}
}

func jobNamed(name string) job { return job{name: name} }

// checkPushed compares the samples of one metric with the rows of the log. Samples of the second of a kill, or of the
// second before it, may be absent from the log. Earlier samples may be absent, too, if the process had not logged any
// second since.
func checkPushed(t *testing.T, s *server, job job, f field, rows []metriclog.Row, killed []int64, end int64) int {
	t.Helper()
	selector := fmt.Sprintf(`%s{job=%q}[30m]`, f.metric, job.name)
	n, wrong := eventually(t, s, selector, end, func() values {
		want, logged := values{}, map[int64]bool{}
		for _, row := range rows {
			if want[row.Resource] == nil {
				want[row.Resource] = map[int64]float64{}
			}
			want[row.Resource][row.Start.Unix()] = float64(f.of(row))
			logged[row.Start.Unix()] = true
		}
		for _, x := range s.query(t, selector) {
			seconds := want[x.Metric["resource"]]
			for _, v := range x.Values {
				at := v.at / 1000
				if _, ok := seconds[at]; ok || seconds == nil || at >= end {
					continue
				}
				atKill := false
				for _, k := range killed {
					since := false // the process has logged a row since
					for second := at; second <= k; second++ {
						since = since || logged[second]
					}
					atKill = atKill || at == k || at == k-1 || at < k && !since
				}
				if v.value == 0 || !logged[at] && atKill { // an idle second has no row
					seconds[at] = v.value
				}
			}
		}
		return want
	})
	if len(wrong) > 0 {
		t.Errorf("%s: %s is wrong in %d places, with kills at %v:\n%s", s.name, selector, len(wrong), killed,
			strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
	return n
}
