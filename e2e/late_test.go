package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// lateRun is how long the servers of [TestLate] and [TestCalm] scrape, unless $WINDOWSTAT_E2E_LATE sets a duration.
const lateRun = time.Minute

// lateDuration returns the duration, and whether the environment sets it.
func lateDuration(t *testing.T) (run time.Duration, isSet bool) {
	t.Helper()
	s := os.Getenv("WINDOWSTAT_E2E_LATE")
	if s == "" {
		return lateRun, false
	}
	run, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return run, true
}

// lateJob is a job of one scraper whose connections end after the deadline.
type lateJob struct {
	job
	relay *relay
}

// TestLate makes scrapes time out after their response has arrived. The timeout equals the interval of a second. The
// connections end with a delay, after the next request has begun. Each second must be in the database or counted as
// unconfirmed. All processors are busy if $WINDOWSTAT_E2E_LATE is set, as by make late; other tests would time out.
func TestLate(t *testing.T) {
	t.Parallel()
	run, busy := lateDuration(t)
	if busy {
		keepBusy(t, 1)
	}
	p := newPaced(t, time.Now(), []string{"r0000"}, collector.Options{})
	made := newLedger(p)
	jobs := func() (all []lateJob, plain []job) {
		for _, late := range []int{0, 20, 40, 60, 100, 300, 1000} {
			page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
			if err != nil {
				t.Fatal(err)
			}
			l := listen(t, "127.0.0.1:0")
			serve(t, page, l, page.ConnState)
			x, addr := startRelay(t, l.Addr().String(), time.Duration(late)*time.Millisecond)
			j := job{
				name: fmt.Sprint("late-", late), path: secondsPath, targets: []string{addr},
				interval: time.Second, timeout: time.Second,
			}
			all, plain = append(all, lateJob{j, x}), append(plain, j)
		}
		return all, plain
	}
	type consumer struct {
		scraper, to *server
		jobs        []lateJob
	}
	var consumers []consumer
	programs := map[string]program{"prometheus-3": prometheus3, "prometheus-2": prometheus2, "victoria": victoria}
	for name, p := range programs {
		late, plain := jobs()
		s := prepareServer(t, name, p, plain...)
		if s.isVictoria {
			s.args = append(s.args, "-dedup.minScrapeInterval=1ms")
		}
		s.start(t)
		consumers = append(consumers, consumer{s, s, late})
	}
	behind := prepareServer(t, "behind", victoria)
	behind.args = append(behind.args, "-dedup.minScrapeInterval=1ms")
	behind.start(t)
	late, plain := jobs()
	agent := newServer(t, "vmagent", vmagent.path(t), true)
	agent.args = []string{
		"-httpListenAddr=" + agent.addr, "-promscrape.config=" + agent.writeConfig(t, agent.config(plain)),
		"-remoteWrite.url=" + writeTo(behind), "-remoteWrite.tmpDataPath=" + agent.dir + "/data",
	}
	agent.start(t)
	consumers = append(consumers, consumer{agent, behind, late})

	until := time.Now().Add(run)
	p.live(func() bool { return time.Now().Before(until) })
	for _, c := range consumers {
		for _, j := range c.jobs {
			j.relay.clear.Store(true)
		}
	}
	stop := p.start(t)
	time.Sleep(5 * time.Second) // the last connections end, and scrapes follow
	stop()
	deadline := time.Now().Add(catchUp)
	for _, c := range consumers {
		for _, j := range c.jobs {
			t.Run(c.scraper.name+"/"+j.name, func(t *testing.T) {
				selector := fmt.Sprintf(`windowstat_persecond_pass{resource="r0000",job=%q}`, j.name)
				await(t, c.to, selector, p.second, deadline)
				missing := checkPresent(t, c.to, selector+"[30m]", made.sample["r0000"], p.second)
				of := c.scraper.countedFor(p.stats, c.scraper.name+":"+j.name+"]")
				unconfirmed, lost := of["cursor_unconfirmed_seconds_total"], of["cursor_lost_seconds_total"]
				t.Logf("%d responses were kept, %v seconds were sent again, %d are missing, %v are unconfirmed",
					j.relay.kept.Load(), of["cursor_resent_seconds_total"], missing, unconfirmed)
				if j.relay.kept.Load() < 3 {
					t.Error("too few responses were kept: nothing is shown")
				}
				if float64(missing) > unconfirmed || lost != 0 {
					t.Errorf("%d seconds are missing and %v unconfirmed; %v are lost", missing, unconfirmed, lost)
				}
			})
		}
	}
}

// checkPresent checks the samples of a range selector, and returns the number of seconds before end without a sample.
func checkPresent(t *testing.T, s *server, selector string, want map[int64]count, end int64) (missing int) {
	t.Helper()
	at := map[int64]int{}
	for _, x := range s.query(t, selector) {
		for _, v := range x.Values {
			second := v.at / 1000
			at[second]++
			if c, ok := want[second]; second < end && (!ok || float64(c.pass) != v.value || at[second] > 1) {
				t.Errorf("%s: second %d is %v; it should be %v, there: %t, samples: %d",
					s.name, second, v.value, c.pass, ok, at[second])
			}
		}
	}
	for second := range want {
		if second < end && at[second] == 0 {
			missing++
		}
	}
	return missing
}

// TestCalm runs servers that scrape four targets of one job at one address every second. Responses begin with a delay,
// so they overlap, and a scrape often uses another connection than the previous one. Nothing times out. Four minutes of
// this test have as many responses as an hour of a scrape every 15 seconds.
func TestCalm(t *testing.T) {
	t.Parallel()
	run, _ := lateDuration(t)
	resources := []string{"r0000", "r0050", "r0100", "r0150"}
	p := newPaced(t, time.Now(), resources, collector.Options{})
	made := newLedger(p)
	type consumer struct {
		scraper, to *server
		page        *switches
	}
	var consumers []consumer
	add := func(name string, program program, to *server) {
		seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		page := &switches{page: seconds, last: map[string]string{}}
		service := httptest.NewUnstartedServer(page)
		service.Config.ConnState = seconds.ConnState
		service.StartTLS()
		t.Cleanup(service.Close)
		s := newServer(t, name, program.path(t), to != nil || program.name == victoria.name)
		config := s.sharedAddress(service.Listener.Addr().String(), resources)
		config = strings.Replace(config, "scrape_interval: 3s", "scrape_interval: 1s", 1)
		config = strings.Replace(config, "scrape_timeout: 2s", "scrape_timeout: 1s", 1)
		if to != nil {
			s.args = []string{
				"-httpListenAddr=" + s.addr, "-promscrape.config=" + s.writeConfig(t, config),
				"-remoteWrite.url=" + writeTo(to), "-remoteWrite.tmpDataPath=" + s.dir + "/data",
			}
		} else {
			s.configure(t, config)
			to = s
		}
		s.start(t)
		consumers = append(consumers, consumer{s, to, page})
	}
	add("prometheus-3", prometheus3, nil)
	add("prometheus-2", prometheus2, nil)
	add("victoria", victoria, nil)
	behind := prepareServer(t, "behind", victoria)
	behind.start(t)
	add("vmagent", vmagent, behind)

	until := time.Now().Add(run)
	p.live(func() bool { return time.Now().Before(until) })
	deadline := time.Now().Add(catchUp)
	for _, c := range consumers {
		t.Run(c.scraper.name, func(t *testing.T) {
			for _, r := range resources {
				await(t, c.to, fmt.Sprintf(`windowstat_persecond_pass{resource=%q}`, r), p.second, deadline)
			}
			failed := 0 // scrapes, as on a busy machine, after which seconds are sent again
			for _, x := range c.to.query(t, `up[30m]`) {
				for _, v := range x.Values {
					if v.value == 0 {
						failed++
					}
				}
			}
			of := c.scraper.counted(p.stats)
			resent, unconfirmed := of["cursor_resent_seconds_total"], of["cursor_unconfirmed_seconds_total"]
			t.Logf("%d responses, %d of them over another connection than the one before; "+
				"%v seconds were sent again, %v are unconfirmed; %d scrapes failed",
				c.page.responses.Load(), c.page.switched.Load(), resent, unconfirmed, failed)
			if failed > 0 {
				return
			}
			made.check(t, c.to, "windowstat_persecond_pass", p.second, func(c count) int { return c.pass })
			if resent != 0 || unconfirmed != 0 || of["cursor_lost_seconds_total"] != 0 {
				t.Error("no second should be sent again, unconfirmed or lost")
			}
		})
	}
}

// switches is a page that counts the requests of a cursor that arrive by another connection than the previous request.
// Its responses begin with a delay.
type switches struct {
	page                http.Handler
	responses, switched atomic.Int64

	mu   sync.Mutex
	last map[string]string // address of the client, by cursor
}

func (x *switches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	cursor := r.URL.Query().Get("cursor")
	x.responses.Add(1)
	if last := x.last[cursor]; last != "" && last != r.RemoteAddr {
		x.switched.Add(1)
	}
	x.last[cursor] = r.RemoteAddr
	x.mu.Unlock()
	time.Sleep(rand.N(400 * time.Millisecond))
	x.page.ServeHTTP(w, r)
}
