package httpclient

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A date in Retry-After is compared with the local clock.
func TestRetryAfterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at, want := range map[time.Duration]time.Duration{
			20 * time.Second: 20 * time.Second, -time.Hour: 0, time.Hour: time.Minute,
		} {
			h := http.Header{"Retry-After": {time.Now().Add(at).UTC().Format(http.TimeFormat)}}
			if got := RetryAfter(h); got != want {
				t.Errorf("in %v: %v, want %v", at, got, want)
			}
		}
	})
}
