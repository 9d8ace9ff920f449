package push

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/bits"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// The receiver responds slowly but accepts everything. Pushes keep up as long as sixteen concurrent requests are fast
// enough. With one request at a time and a thousand resources, the lag would grow by 0.4 s each second until the
// history is full.
func TestPushWithHighLatency(t *testing.T) {
	for _, resources := range []int{40, 400} {
		synctest.Test(t, func(t *testing.T) {
			const most = 400 // like 10,000 samples with twenty-five times as many resources
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
				t.Errorf("%d concurrent requests, want about %d", atOnce, want)
			}
		})
	}
}

// The receiver fails half of the requests. A resent request delays its series for seconds only. Backoffs of up to half
// a minute would cause a lag of 230 s.
func TestPushWithHalfOfTheRequestsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{MaxSamples: 230})
		fails := map[string]int{} // remaining failures by request
		unlucky := time.Now()
		j.before = func(r *http.Request) (*http.Response, error) {
			body := peek(r)
			j.mu.Lock()
			defer j.mu.Unlock()
			// The number of failures depends only on the request, so the order of goroutines has no effect. Half of the
			// requests never fail, a quarter fails once, and so on, up to three times. Every two minutes one request
			// fails eight times and takes 23 s, plus or minus half.
			if _, known := fails[body]; !known {
				fails[body] = min(bits.TrailingZeros32(crc32.ChecksumIEEE([]byte(body))), 3)
				if time.Since(unlucky) > 2*time.Minute {
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
			t.Errorf("lag is %v s, want at most 40", lag)
		}
	})
}

// A server without native histograms always responds 500 to requests with a histogram. The Pusher detects this, logs it
// once, and sends the other samples.
func TestServerWithoutHistograms(t *testing.T) {
	for _, words := range []string{
		"native histograms are disabled\n",
		"Native Histograms not enabled for tenant", "nothing about them",
		`unsupported metric type "METRIC_TYPE_GAUGEHISTOGRAM" for metric "rt_distribution_seconds"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			j := newJob(t, Options{Histogram: true})
			var logged strings.Builder
			j.Pusher.log.To = slog.New(slog.NewTextHandler(&logged, nil))
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
				if err == nil || refused < 5 || strings.Contains(logged.String(), "histogram") {
					t.Errorf("%v: %d requests, %s", err, refused, logged.String())
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			j.check(t, 0)
			if n := strings.Count(logged.String(), "does not accept native histograms"); n != 1 || refused != 1 {
				t.Errorf("logged %d times, %d requests with histograms", n, refused)
			}
			s := j.counts()
			for _, name := range []string{"lost_seconds", "refused_samples", "resent_samples"} {
				if s["push_"+name+"_total"] != 0 {
					t.Errorf("%s: %v", name, s)
				}
			}
		})
	}
}

// A server without native histograms has already accepted the requests without them. Only the other requests are
// rebuilt.
func TestServerWithoutHistogramsManySeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{Histogram: true, MaxSamples: 10, Interval: 5 * time.Second})
		refused, taken := 0, 0
		j.before = func(r *http.Request) (*http.Response, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			if strings.Contains(peek(r), "rt_distribution_seconds") {
				refused++
				return answer(http.StatusInternalServerError, "native histograms are disabled")
			}
			taken++
			return nil, nil
		}
		stop := background.Start(j.Run)
		for range 20 {
			for i := range 3 {
				e := j.Resource(fmt.Sprint("r", i)).Enter()
				e.Exit(nil)
				j.Resource(fmt.Sprint("b", i)).Block("")
			}
			time.Sleep(time.Second)
		}
		*j.end = j.Seal().Open + 1
		if err := stop(); err != nil {
			t.Error(err)
		}
		j.check(t, 0)
		if refused == 0 || refused > maxParts/2 || taken < maxParts {
			t.Errorf("%d requests with histograms, %d without", refused, taken)
		}
		s := j.counts()
		for _, name := range []string{"lost_seconds", "refused_samples", "resent_samples", "unconfirmed_samples"} {
			if s["push_"+name+"_total"] != 0 {
				t.Errorf("%s: %v", name, s)
			}
		}
	})
}

// For any number of parts, a series is in the same part in each process, and each part has its share of the series.
func TestParts(t *testing.T) {
	f := &table.Family{Name: "windowstat_persecond_pass"}
	for parts := 1; parts <= maxParts; parts++ {
		counts := make([]int, parts)
		for i := range 1000 * parts {
			counts[(&splitter{parts: parts}).part(f, []string{fmt.Sprint("GET /api/v1/customers/", i)})]++
		}
		for part, n := range counts {
			if n < 700 || n > 1300 {
				t.Errorf("part %d of %d has %d of %d series", part, parts, n, 1000*parts)
			}
		}
	}
	if part := (&splitter{parts: maxParts}).part(f, []string{"GET /"}); part != 10 {
		t.Errorf("the part of the series has changed to %d, want 10", part)
	}
}
