package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// fill writes five series of ten samples each to a receiver, two series in a request, and then the same series again
// with later samples.
func fill(ctx context.Context, s *receiver) (WriteResult, error) {
	f := &table.Family{Name: "m", Type: table.Gauge}
	o := Options{
		URL:        "http://server/",
		Labels:     map[string]string{"job": "j", "instance": "i"},
		MaxSamples: 20,
		Logger:     slog.New(slog.DiscardHandler),
	}
	o.Format, o.Client = lineFormat{}, &http.Client{Transport: s}
	return Write(ctx, o, func(sink seconds.Sink) error {
		for part := range int64(2) {
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				sink.Series(f, []string{"resource"}, []string{name})
				for i := range int64(10) {
					sink.Value(100+part*10+i, float64(i))
				}
			}
		}
		return nil
	})
}

func TestWrite(t *testing.T) {
	unreachable := errors.New("unreachable")
	always := func(status int) func(int) (*http.Response, error) {
		return func(int) (*http.Response, error) { return answer(status, "so it is") }
	}
	for name, tc := range map[string]struct {
		before   func(request int) (*http.Response, error)
		want     WriteResult
		stored   int
		requests int // 0 means any number
		says     string
	}{
		"no errors": {nil, WriteResult{Written: 100}, 100, 5, ""},
		"one fails": {func(n int) (*http.Response, error) {
			if n == 2 {
				return answer(http.StatusServiceUnavailable, "busy")
			}
			return nil, nil
		}, WriteResult{Written: 100}, 100, 6, ""},
		"one request is refused": {func(n int) (*http.Response, error) {
			if n == 2 {
				return answer(http.StatusBadRequest, "too old")
			}
			return nil, nil
		}, WriteResult{Written: 80, Refused: 20}, 80, 5, ""},
		"unreachable server": {
			func(int) (*http.Response, error) { return nil, unreachable },
			WriteResult{Left: 100},
			0, 0, "unreachable",
		},
		"outage after two requests": {
			func(n int) (*http.Response, error) {
				if n > 2 {
					return answer(http.StatusServiceUnavailable, "gone")
				}
				return nil, nil
			},
			WriteResult{Written: 40, Unconfirmed: 20, Left: 40},
			40, 0,
			"gone (unknown whether the last 20 samples arrived)",
		},
		"forbidden": {always(http.StatusForbidden), WriteResult{Left: 100}, 0, 1, "403 Forbidden: so it is"},
		"not found": {always(http.StatusNotFound), WriteResult{Left: 100}, 0, 1, "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newReceiver()
				if tc.before != nil {
					s.before = func(*http.Request) (*http.Response, error) { return tc.before(s.requests) }
				}
				begin := time.Now()
				got, err := fill(t.Context(), s)
				if got != tc.want || len(s.stored) != tc.stored || tc.requests != 0 && s.requests != tc.requests {
					t.Errorf("%+v, want %+v; %d stored, %d requests", got, tc.want, len(s.stored), s.requests)
				}
				if tc.says == "" && err != nil || !strings.Contains(fmt.Sprint(err), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
				if time.Since(begin) > maxWriteTime+time.Second {
					t.Errorf("it took %v", time.Since(begin))
				}
				if _, ok := s.stored[`m{instance="i",job="j",resource="a"} 100`]; ok != (tc.stored > 0) {
					t.Errorf("stored %v", s.stored)
				}
			})
		})
	}
}

func TestWriteInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newReceiver()
		ctx, cancel := context.WithCancel(t.Context())
		s.before = func(*http.Request) (*http.Response, error) {
			if s.requests == 3 {
				cancel()
			}
			return nil, nil
		}
		got, err := fill(ctx, s)
		if got.Written+got.Left != 100 || got.Left < 40 || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestWriteWithInvalidOptions(t *testing.T) {
	_, err := Write(t.Context(), Options{URL: "ftp://x"}, nil)
	if text := fmt.Sprint(err); !strings.Contains(text, `"ftp://x"`) || !strings.Contains(text, "no job") {
		t.Errorf("%v", err)
	}
}
