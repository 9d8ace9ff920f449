package push

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// A receiver that takes everything, but takes its time: pushes keep up as long as sixteen requests at a time do. One at a time fell
// behind by 0.4 s a second with a thousand resources, until the history was over.
func TestPushToADistantServer(t *testing.T) {
	for _, resources := range []int{40, 400} {
		synctest.Test(t, func(t *testing.T) {
			const most = 400 // as 10,000 with twenty-five times as many resources
			j := newJob(t, Options{MaxSamples: most})
			inFlight, atOnce := 0, 0
			j.before = func(*http.Request) (*http.Response, error) {
				j.mu.Lock()
				inFlight++
				atOnce = max(atOnce, inFlight)
				j.mu.Unlock()
				time.Sleep(700 * time.Millisecond)
				j.mu.Lock()
				inFlight--
				j.mu.Unlock()
				return nil, nil
			}
			stop := background.Start(j.Run)
			for range 20 {
				for i := range resources {
					j.Resource(fmt.Sprint("r", i)).Block("")
				}
				time.Sleep(time.Second)
				if s := j.counts(); s["push_lag_seconds"] > 3 {
					t.Fatalf("%v", s)
				}
			}
			*j.end = j.Seal().Open + 1
			if err := stop(); err != nil {
				t.Error(err)
			}
			j.check(t, 0)
			if want := (13*resources + most - 1) / most; atOnce < min(want, 16) || atOnce > 16 {
				t.Errorf("%d requests at a time, want some %d", atOnce, want)
			}
		})
	}
}

// A receiver that fails half of its requests holds up the series of a request that is sent again, and for seconds: back-offs of up to
// half a minute made a lag of 230 s.
func TestPushToAServerThatFailsHalfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{MaxSamples: 230})
		fails := map[string]int{} // how often requests fail from now on
		unlucky := time.Now()
		j.before = func(r *http.Request) (*http.Response, error) {
			body := peek(r)
			j.mu.Lock()
			defer j.mu.Unlock()
			// How often a request fails depends on it alone, so that no order of goroutines makes it worse: half of them never, a
			// quarter once, and so on, up to three times. Every two minutes there is one that fails eight times, which takes 23 s, give
			// or take a half.
			if _, known := fails[body]; !known {
				if fails[body] = min(bits.TrailingZeros32(crc32.ChecksumIEEE([]byte(body))), 3); time.Since(unlucky) > 2*time.Minute {
					fails[body], unlucky = 8, time.Now()
				}
			}
			if fails[body] > 0 {
				fails[body]--
				return answer(http.StatusServiceUnavailable, "")
			}
			return nil, nil
		}
		stop := background.Start(j.Run)
		lag := 0.0
		minutes := 20
		if testing.Short() {
			minutes = 4
		}
		for range minutes * 60 {
			for i := range 30 {
				j.Resource(fmt.Sprint("r", i)).Block("")
			}
			time.Sleep(time.Second)
			s := j.counts()
			if lag = max(lag, s["push_lag_seconds"]); s["push_lost_seconds_total"] > 0 {
				t.Fatalf("%v", s)
			}
		}
		j.mu.Lock()
		j.before = nil
		j.mu.Unlock()
		*j.end = j.Seal().Open + 1
		if err := stop(); err != nil {
			t.Error(err)
		}

		if lag > 40 {
			t.Errorf("it lags by %v s", lag)
		}
	})
}

// One shard that cannot go on does not keep the others: the series of one request are behind, and all others arrive.
func TestOneRequestHoldsUpItsOwnSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{MaxSamples: 50})
		back := time.Now().Add(40 * time.Second)
		j.before = func(r *http.Request) (*http.Response, error) {
			if text := peek(r); strings.Contains(text, `resource="r3"`) && time.Now().Before(back) {
				return answer(http.StatusServiceUnavailable, "")
			}
			return nil, nil
		}
		stop := background.Start(j.Run)
		for range 50 {
			for i := range 30 {
				j.Resource(fmt.Sprint("r", i)).Block("")
			}
			time.Sleep(time.Second)
			if d := time.Until(back); d == 5*time.Second {
				latest := map[string]int64{}
				j.mu.Lock()
				for i := range 30 {
					name := fmt.Sprint("r", i)
					latest[name] = j.latest[fmt.Sprintf(`windowstat_persecond_block{instance="i",job="j",resource=%q}`, name)].unix
				}
				j.mu.Unlock()
				behind := 0
				for _, at := range latest {
					if time.Now().Unix()-at > 5 {
						behind++
					}
				}
				if behind == 0 || behind > 10 {
					t.Errorf("%d of 30 resources are behind: %v", behind, latest)
				}
			}
		}
		*j.end = j.Seal().Open + 1
		if err := stop(); err != nil {
			t.Error(err)
		}
		j.check(t, 0)
	})
}

// A server that takes no histograms answers 500 to requests that have one, for ever: it is found out, said once, and gets the rest.
func TestServerWithoutHistograms(t *testing.T) {
	for _, words := range []string{"native histograms are disabled\n", "Native Histograms not enabled for tenant", "nothing about them"} {
		synctest.Test(t, func(t *testing.T) {
			j := newJob(t, Options{Histogram: true})
			var said strings.Builder
			j.Pusher.log.To = slog.New(slog.NewTextHandler(&said, nil))
			refused := 0
			j.before = func(r *http.Request) (*http.Response, error) {
				if strings.Contains(peek(r), "rt_distribution_seconds") {
					refused++
					return answer(http.StatusInternalServerError, words)
				}
				return nil, nil
			}
			stop := background.Start(j.Run)
			for range 20 {
				e := j.Resource("a").Enter()
				e.Exit(nil)
				time.Sleep(time.Second)
			}
			*j.end = j.Seal().Open + 1
			err := stop()
			if strings.HasPrefix(words, "nothing") {
				if err == nil || refused < 5 || strings.Contains(said.String(), "histogram") {
					t.Errorf("%v: %d requests, %s", err, refused, said.String())
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			j.check(t, 0)
			if n := strings.Count(said.String(), "takes no native histograms"); n != 1 || refused != 1 {
				t.Errorf("said %d times, %d requests with histograms", n, refused)
			}
			if s := j.counts(); s["push_lost_seconds_total"]+s["push_refused_samples_total"]+s["push_resent_samples_total"] != 0 {
				t.Errorf("%v", s)
			}
		})
	}
}

// However shards are divided, every slot is in one of them, and each name in one slot.
func TestSlots(t *testing.T) {
	for n := 1; n <= maxShards; n++ {
		all := seconds.Slots(0)
		for i := range n {
			p := part(seconds.AllSlots, i, n)
			if p&all != 0 || bits.OnesCount16(uint16(p)) < maxShards/n {
				t.Errorf("part %d of %d is %b beside %b", i, n, p, all)
			}
			all |= p
		}
		if all != seconds.AllSlots {
			t.Errorf("%d parts are %b", n, all)
		}
	}
	counts := [maxShards]int{}
	for i := range 16_000 {
		name, found := fmt.Sprint("GET /api/v1/customers/", i), 0
		for slot := range maxShards {
			if seconds.Slots(1 << slot).Has(name) {
				counts[slot]++
				found++
			}
		}
		if found != 1 || !seconds.AllSlots.Has(name) || !seconds.Slots(0).Has(name) {
			t.Fatalf("%s is in %d slots", name, found)
		}
	}
	for slot, n := range counts {
		if n < 700 || n > 1300 {
			t.Errorf("slot %d has %d of 16,000 names", slot, n)
		}
	}
}

// Seconds that several shards lose count once, whatever the order, and a second that was sent by some of them is lost.
func TestLostSecondsCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := &Pusher{line: seconds.NewLine(c), sender: &sender{}}
		first := p.line.First()
		random := rand.New(rand.NewPCG(5, 6))
		lost := map[int64]bool{}
		for range 3 {
			p.shards = append(p.shards, &shard{Position: seconds.Position{Next: first}})
		}
		for range 1000 {
			s := p.shards[random.IntN(3)]
			to := s.Next + int64(random.IntN(10))
			if random.IntN(3) == 0 {
				p.lose(s.Next, to)
				for at := s.Next; at < to; at++ {
					lost[at] = true
				}
			}
			p.move(s, to)
			sent := int64(0)
			for at := first; at < p.slowest(); at++ {
				if !lost[at] {
					sent++
				}
			}
			if p.total.lost != int64(len(lost)) || p.total.seconds != sent {
				t.Fatalf("%d lost, want %d; %d sent, want %d", p.total.lost, len(lost), p.total.seconds, sent)
			}
		}
	})
}
