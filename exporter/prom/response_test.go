package prom

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// The states of the connection decide the verdict of a response. If they prove nothing, the response is unconfirmed.
func TestDeliveryOfAResponse(t *testing.T) {
	type step struct {
		state http.ConnState
		after time.Duration
	}
	const s = time.Second
	for name, tc := range map[string]struct {
		steps []step // after the request of the response has begun
		want  verdict
	}{
		"still being written": {nil, broken},
		"broken":              {[]step{{http.StateClosed, s}}, broken},
		"used again":          {[]step{{http.StateIdle, s}, {http.StateActive, s}}, acknowledged},
		"used again, and closed": {[]step{
			{http.StateIdle, s},
			{http.StateActive, s},
			{http.StateIdle, s},
			{http.StateClosed, s},
		}, acknowledged},
		"used again, and hijacked": {[]step{
			{http.StateIdle, s},
			{http.StateActive, s},
			{http.StateHijacked, s},
		}, acknowledged},
		"closed at once":       {[]step{{http.StateIdle, s}, {http.StateClosed, 0}}, left},
		"closed after a while": {[]step{{http.StateIdle, s}, {http.StateClosed, 107 * s}}, left},
		"closed when the server's timeout ends": {
			[]step{{http.StateIdle, s}, {http.StateClosed, 120 * s}},
			unconfirmed,
		},
		"closed a little earlier": {
			[]step{{http.StateIdle, s}, {http.StateClosed, 108 * s}},
			unconfirmed,
		},
		"idle, and arrived bytes are unknown": {[]step{{http.StateIdle, s}}, left},
	} {
		here, there := net.Pipe()
		defer here.Close()  //nolint:errcheck // nothing is written
		defer there.Close() //nolint:errcheck // nothing is written
		now := time.Unix(1000, 0)
		c := &connection{Conn: here}
		c.change(http.StateNew, now)
		c.change(http.StateActive, now)
		a := &response{conn: c, request: c.requests, idleTimeout: 2 * time.Minute}
		for _, step := range tc.steps {
			now = now.Add(step.after)
			c.change(step.state, now)
		}
		if got := a.verdict(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
		c.shared = true
		if got := a.verdict(); got != unconfirmed {
			t.Errorf("%s, two connections with one address: %d, want unconfirmed", name, got)
		}
	}
}

// Seconds that did not arrive are sent again. After a large response, the responses are halved until one arrives, and
// then grow again. A response that was written completely is sent six times, or twice if the client is known to close
// its connections.
func TestResends(t *testing.T) {
	const much, little = 10_000, 100 // samples of a second
	for _, tc := range []struct {
		name      string
		samples   int
		responses []sent
		want      cursorCounts
	}{
		{"large responses", much, []sent{
			{116, broken, true, [2]int64{100, 116}},
			{130, broken, true, [2]int64{100, 108}},
			{145, acknowledged, true, [2]int64{100, 104}},
			{150, acknowledged, true, [2]int64{104, 108}}, // no larger while seconds are in doubt
			{155, acknowledged, true, [2]int64{108, 112}},
			{155, acknowledged, true, [2]int64{112, 116}},
			{155, acknowledged, true, [2]int64{116, 124}},
			{160, broken, false, [2]int64{124, 140}}, // the client disconnects
			{160, broken, false, [2]int64{124, 132}},
			{160, broken, false, [2]int64{124, 128}},
			{160, broken, false, [2]int64{124, 126}}, // small enough
			{160, broken, false, [2]int64{124, 126}},
			{160, acknowledged, true, [2]int64{124, 126}},
			{160, acknowledged, true, [2]int64{126, 130}},
			{160, acknowledged, true, [2]int64{130, 138}},
		}, cursorCounts{delivered: 38, resent: 8 + 4 + 4 + 4 + 4}},
		{"small responses", little, []sent{
			{105, broken, true, [2]int64{100, 105}},
			{110, broken, true, [2]int64{100, 110}},
			{115, broken, false, [2]int64{100, 115}},
			{120, broken, false, [2]int64{100, 120}},
			{125, acknowledged, true, [2]int64{100, 125}},
		}, cursorCounts{delivered: 25, resent: 5 + 10}},
		{"never read", little, []sent{
			{105, broken, true, [2]int64{100, 105}},
			{106, broken, true, [2]int64{100, 106}},
			{107, broken, true, [2]int64{100, 107}},
			{108, broken, true, [2]int64{100, 108}},
			{109, broken, true, [2]int64{100, 109}},
			{110, broken, true, [2]int64{100, 110}},
			{111, broken, true, [2]int64{110, 111}}, // seconds before 110 are given up
			{112, acknowledged, true, [2]int64{110, 112}},
		}, cursorCounts{delivered: 12, unconfirmed: 10, resent: 5 + 6 + 7 + 8 + 9 + 1}},
		{"client that closes connections", little, []sent{
			{105, left, true, [2]int64{100, 105}},
			{106, left, true, [2]int64{100, 106}},
			{107, left, true, [2]int64{100, 107}},
			{108, left, true, [2]int64{100, 108}},
			{109, left, true, [2]int64{100, 109}},
			{110, left, true, [2]int64{100, 110}},
			{115, left, true, [2]int64{110, 115}}, // given up
			{120, left, true, [2]int64{110, 120}},
			{125, left, true, [2]int64{120, 125}}, // given up after two responses
			{130, broken, true, [2]int64{120, 130}},
			{135, acknowledged, true, [2]int64{120, 135}}, // the client has not read the previous response
			{140, left, true, [2]int64{135, 140}},
			{145, left, true, [2]int64{135, 145}},
			{150, acknowledged, true, [2]int64{135, 150}}, // the client keeps its connections now
		}, cursorCounts{delivered: 50, unconfirmed: 20, resent: 5 + 6 + 7 + 8 + 9 + 5 + 5 + 10 + 5 + 10}},
	} {
		x := newCursors(1, DefaultCursorExpiry, plainLine(t)).get(scraper{}, "", 100, time.Time{})
		var last verdict
		for i, s := range tc.responses {
			if x.pending != nil {
				x.settle(last)
			}
			from, _, most := x.begin(time.Unix(s.open, 0), s.open-1000, s.open)
			to := min(s.open, from+most)
			x.sent(new(response), from, to, int(to-from)*tc.samples, s.complete, 0)
			if got := [2]int64{from, to}; got != s.want {
				t.Errorf("%s: response %d has %v, want %v", tc.name, i, got, s.want)
			}
			last = s.verdict
		}
		if x.pending != nil {
			x.settle(last)
		}
		if x.count != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, x.count, tc.want)
		}
	}
}

// sent is a response of the test.
type sent struct {
	open     int64   // second of the request
	verdict  verdict // verdict that shows at the next request
	complete bool
	want     [2]int64
}

// A connection that ends long after its response was taken as read ends for another reason.
func TestEndsAfterTheVerdict(t *testing.T) {
	for after, want := range map[time.Duration]bool{
		1: true, closingEnd - 1: true, closingEnd: false,
		time.Hour: false,
	} {
		here, there := net.Pipe()
		defer here.Close()  //nolint:errcheck // nothing is written
		defer there.Close() //nolint:errcheck // nothing is written
		now := time.Unix(1000, 0)
		c := &connection{Conn: here}
		c.change(http.StateNew, now)
		c.change(http.StateActive, now)
		c.change(http.StateIdle, now)
		now = now.Add(time.Minute)
		c.unproven, c.decided = new(response), now
		_, _, unread := c.change(http.StateClosed, now.Add(after))
		if got := unread != nil; got != want {
			t.Errorf("closed %v after the verdict: unconfirmed is %v", after, got)
		}
	}
}
