package push

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/background"
)

// A server fails one attempt with an unclear result and then refuses the samples. The samples do not count as accepted,
// because the server has not stored them.
func TestRefusalAfterUnclearAttempt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		first  func(*http.Request) (*http.Response, error) // first response to each request
		code   int
		body   string
		header []string
		want   string // metric that counts the samples
	}{
		{"too old", busy, 400, "out of bounds\n", nil, "refused"},
		{"a proxy's page", busy, 400, "<html>Bad Request</html>", []string{"Content-Type", "text/html"}, "refused"},
		{"too large", busy, 413, "", nil, "refused"},
		{
			"Mimir's limit", reset, 400, "per-user series limit of 1 exceeded (err-mimir-max-series-per-user)",
			nil, "refused",
		},
		{"another process writes the same series", busy, 400, "out of order sample\n", nil, "unconfirmed"},
		{"and after a broken connection", reset, 400, "duplicate sample for timestamp\n", nil, "unconfirmed"},
		{
			"Thanos", busy, 409, "store locally for endpoint a:1: add 1 samples: out of order sample\n", nil,
			"unconfirmed",
		},
		{"the first attempt sent nothing", noRoute, 400, "out of order sample\n", nil, "refused"},
		{"the first response was 429", wait, 400, "out of order sample\n", nil, "refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJob(t, Options{})
				seen := map[string]bool{}
				j.before = func(r *http.Request) (*http.Response, error) {
					body := peek(r)
					if time.Since(began(j)) < 10*time.Second || len(seen) == 10 && !seen[body] {
						return nil, nil
					}
					if !seen[body] {
						seen[body] = true
						return tc.first(r)
					}
					return answer(tc.code, tc.body, tc.header...)
				}
				if err := j.run(t, 40*time.Second); err != nil {
					t.Error(err)
				}
				s := j.counts()
				if got := int(s["push_samples_total"]); got != len(j.stored) {
					t.Errorf("counted %d samples as accepted, but the server has %d", got, len(j.stored))
				}
				for _, name := range []string{"refused", "unconfirmed"} {
					if got := s["push_"+name+"_samples_total"]; (got > 0) != (name == tc.want) {
						t.Errorf("%v samples are counted as %s", got, name)
					}
				}
			})
		})
	}
}

func began(j job) time.Time { return time.Unix(j.Tree().View().Node().Since(), 0) }

func busy(*http.Request) (*http.Response, error)    { return answer(503, "") }
func wait(*http.Request) (*http.Response, error)    { return answer(429, "", "Retry-After", "1") }
func noRoute(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }

func reset(r *http.Request) (*http.Response, error) {
	_, _ = r.Body.Read(make([]byte, 100))
	return nil, errors.New("connection reset by peer")
}

// peek returns the unread body of a request without consuming it.
func peek(r *http.Request) string {
	b := r.Body.(*body)
	text := make([]byte, b.rest.Len())
	_, _ = b.rest.ReadAt(text, 0)
	return string(text)
}

// A request with an unknown result at the end of a job may have arrived. The error reports its samples, and they do not
// count as lost.
func TestEndOfJobWithUnknownResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{Drain: 5 * time.Second, Interval: 4 * time.Second})
		hangs := time.Now().Add(7 * time.Second)
		j.after = func(r *http.Request) (*http.Response, error) {
			if time.Now().Before(hangs) {
				return nil, nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		err := j.run(t, 9*time.Second)
		s := j.counts()
		if err == nil || !strings.Contains(err.Error(), "cannot send 2 seconds") ||
			!strings.Contains(err.Error(), "samples arrived at http://x/push") {
			t.Error(err)
		}
		if s["push_unconfirmed_samples_total"] == 0 || s["push_lost_seconds_total"] != 2 ||
			s["push_seconds_total"]+2 != float64(*j.end-began(j).Unix()) {
			t.Errorf("%v", s)
		}
		if got := s["push_samples_total"] + s["push_unconfirmed_samples_total"]; int(got) != len(j.stored) {
			t.Errorf("%v samples are accepted or unconfirmed, but the server has %d", got, len(j.stored))
		}
	})
}

// A refusal within a minute after an outage is logged. No message is logged more than once a minute.
func TestLogOfPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		j := newJob(t, Options{})
		j.Pusher.log.To = slog.New(slog.NewTextHandler(&out, nil))
		n := 0
		j.before = func(r *http.Request) (*http.Response, error) {
			switch n++; n % 4 {
			case 0:
				return answer(503, "")
			case 1:
				return answer(413, "<html>Request Entity Too Large</html>")
			}
			return nil, nil
		}
		if err := j.run(t, 55*time.Second); err != nil {
			t.Error(err)
		}
		for _, message := range []string{"cannot push; retrying", "the server refused samples", "pushing works again"} {
			if got := strings.Count(out.String(), message); got != 1 {
				t.Errorf("%q was logged %d times:\n%s", message, got, out.String())
			}
		}
	})
}

// A URL path that responds 404 for some minutes and then works loses nothing.
func TestPushToMissingPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{})
		ready := time.Now().Add(45 * time.Second)
		j.before = func(*http.Request) (*http.Response, error) {
			if time.Now().Before(ready) {
				return answer(404, "404 page not found")
			}
			return nil, nil
		}
		if err := j.run(t, time.Minute); err != nil {
			t.Error(err)
		}
		j.check(t, 0)
		if s := j.counts(); int(s["push_samples_total"]) != len(j.stored) || s["push_resent_samples_total"] != 0 {
			t.Errorf("%v", s)
		}
	})
}

// A second Run sends nothing twice, and distinguishes samples that may have arrived from unsent samples.
func TestSecondRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, Options{Drain: time.Second, Interval: 3 * time.Second, MaxSamples: 20})
		j.after = func(*http.Request) (*http.Response, error) { return answer(503, "") }
		if err := j.run(t, 5*time.Second); err == nil {
			t.Error("Run reports no unsent seconds")
		}
		before := j.counts()
		j.after = nil
		stop := background.Start(j.Run)
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s := j.counts()
		if s["push_lost_seconds_total"] != before["push_lost_seconds_total"] ||
			s["push_unconfirmed_samples_total"] != before["push_unconfirmed_samples_total"] ||
			s["push_refused_samples_total"] != 0 || s["push_resent_samples_total"] != 0 {
			t.Errorf("%v, and then %v", before, s)
		}
	})
}
