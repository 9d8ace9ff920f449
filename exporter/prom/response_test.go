package prom

import (
	"testing"
	"time"
)

// The state of the connection decides about the delivery of a response; where it proves nothing, the response is unconfirmed.
func TestDeliveryOfAResponse(t *testing.T) {
	began := time.Unix(1000, 0)
	same := &conn{}
	became := func(s connState, after time.Duration) response {
		return response{complete: true, conn: &conn{}, after: &aftermath{state: s, at: began.Add(after), written: began.Add(9500 * time.Millisecond)}}
	}
	for _, tc := range []struct {
		name       string
		last, next response
		want       delivery
	}{
		{"not written whole", response{conn: same}, response{conn: same}, partial},
		{"the same connection", response{complete: true, conn: same}, response{conn: same}, acknowledged},
		{"the same address, not watched", response{complete: true}, response{}, acknowledged},
		{"another address, not watched", response{complete: true}, response{remote: "b"}, unconfirmed},
		{"a proxy", response{complete: true, proxied: true}, response{}, unconfirmed},
		{"now a proxy", response{complete: true}, response{proxied: true}, unconfirmed},
		{"closed at once", became(connClosedByClient, time.Second), response{remote: "b"}, acknowledged},
		{"closed when it was idle", became(connClosedByClient, time.Minute), response{remote: "b"}, acknowledged},
		{"closed as the scrape timed out", became(connClosedByClient, 10*time.Second), response{remote: "b"}, unknown},
		{"closed as it timed out by the client's clock", became(connClosedByClient, 9900*time.Millisecond), response{remote: "b"}, unknown},
		{"closed as the scrape would have timed out, long after the response", func() response {
			r := became(connClosedByClient, 10*time.Second)
			r.after.written = began.Add(time.Second)
			return r
		}(), response{remote: "b"}, acknowledged},
		{"used for another page", became(connUsedAgain, 10*time.Second), response{remote: "b"}, acknowledged},
		{"reset", became(connBroken, time.Second), response{remote: "b"}, unknown},
		{"closed by the server", became(connClosedByServer, time.Minute), response{remote: "b"}, unconfirmed},
		{"still open, and idle", became(connOpen, 0), response{remote: "b"}, unknown},
		// The address of a connection that ended is used again.
		{"another connection from the same address", became(connBroken, time.Second), response{conn: &conn{}}, unknown},
	} {
		tc.last.began, tc.last.timeout = began, 10*time.Second
		if got := tc.last.delivery(&tc.next); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// What did not arrive is sent again: if it was much, in ever smaller responses, and those after them grow again; six times,
// if it was written whole.
func TestSecondsAreSentAgain(t *testing.T) {
	const much, little = 10_000, 100 // samples of a second
	for _, tc := range []struct {
		name      string
		samples   int
		responses []sent
		want      cursorCounts
	}{
		{"large responses", much, []sent{
			{116, connBroken, true, [2]int64{100, 116}},
			{130, connBroken, true, [2]int64{100, 108}},
			{145, connClosedByClient, true, [2]int64{100, 104}},
			{150, connClosedByClient, true, [2]int64{104, 108}}, // no larger while there is doubt
			{155, connClosedByClient, true, [2]int64{108, 112}},
			{155, connClosedByClient, true, [2]int64{112, 116}},
			{155, connClosedByClient, true, [2]int64{116, 124}},
			{160, connBroken, false, [2]int64{124, 140}}, // hangs up
			{160, connBroken, false, [2]int64{124, 132}},
			{160, connBroken, false, [2]int64{124, 128}},
			{160, connBroken, false, [2]int64{124, 126}}, // small enough
			{160, connBroken, false, [2]int64{124, 126}},
			{160, connClosedByClient, true, [2]int64{124, 126}},
			{160, connClosedByClient, true, [2]int64{126, 130}},
			{160, connClosedByClient, true, [2]int64{130, 138}},
		}, cursorCounts{delivered: 38, resent: 8 + 4 + 4 + 4 + 4}},
		{"small responses", little, []sent{
			{105, connBroken, true, [2]int64{100, 105}},
			{110, connBroken, true, [2]int64{100, 110}},
			{115, connBroken, false, [2]int64{100, 115}},
			{120, connBroken, false, [2]int64{100, 120}},
			{125, connClosedByClient, true, [2]int64{100, 125}},
		}, cursorCounts{delivered: 25, resent: 5 + 10}},
		{"never read", little, []sent{
			{105, connBroken, true, [2]int64{100, 105}},
			{106, connBroken, true, [2]int64{100, 106}},
			{107, connBroken, true, [2]int64{100, 107}},
			{108, connBroken, true, [2]int64{100, 108}},
			{109, connBroken, true, [2]int64{100, 109}},
			{110, connBroken, true, [2]int64{100, 110}},
			{111, connBroken, true, [2]int64{110, 111}}, // given up
			{112, connClosedByClient, true, [2]int64{110, 112}},
		}, cursorCounts{delivered: 12, unconfirmed: 10, resent: 5 + 6 + 7 + 8 + 9 + 1}},
	} {
		x := newCursor(scraper{}, 100, time.Time{})
		for i, s := range tc.responses {
			a := &response{conn: &conn{}, after: &aftermath{state: s.state}, timeout: time.Minute}
			x.settle(a)
			from, most := x.begin(time.Unix(s.open, 0), s.open, 1000)
			to := min(s.open, from+most)
			x.sent(a, from, to, int(to-from)*tc.samples, s.complete)
			if got := [2]int64{from, to}; got != s.want {
				t.Errorf("%s: response %d has %v, want %v", tc.name, i, got, s.want)
			}
		}
		x.settle(&response{})
		if x.count != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, x.count, tc.want)
		}
	}
}

// sent is a response of the test.
type sent struct {
	open     int64     // second
	state    connState // of the connection, when the next request comes
	complete bool
	want     [2]int64
}
