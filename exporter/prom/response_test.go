package prom

import (
	"net"
	"testing"
	"time"
)

// The state of the connection decides about the delivery of a response; where it proves nothing, the response is unconfirmed.
func TestDeliveryOfAResponse(t *testing.T) {
	began := time.Unix(1000, 0)
	closed := func(s connState) *conn { return &conn{Conn: &net.TCPConn{}, closing: s} }
	open := closed(connOpen)
	for _, tc := range []struct {
		name  string
		last  response
		next  response
		want  delivery
		later time.Duration // until the next request
	}{
		{"not written whole", response{conn: open}, response{conn: open}, partial, 0},
		{"the same connection", response{complete: true, conn: open}, response{conn: open}, acknowledged, 0},
		{"the same address, not watched", response{complete: true}, response{}, acknowledged, 0},
		{"another address, not watched", response{complete: true}, response{remote: "b"}, unconfirmed, 0},
		{"a proxy", response{complete: true, proxied: true}, response{}, unconfirmed, 0},
		{"now a proxy", response{complete: true}, response{proxied: true}, unconfirmed, 0},
		{"closed in order", response{complete: true, conn: closed(connClosedByClient)}, response{remote: "b"}, acknowledged, 0},
		{"reset", response{complete: true, conn: closed(connBroken)}, response{remote: "b"}, unknown, 0},
		{"closed by the server", response{complete: true, conn: closed(connClosedByServer)}, response{remote: "b"}, unconfirmed, 0},
		{"still open", response{complete: true, conn: open}, response{remote: "b"}, unconfirmed, time.Minute},
		// The address of a connection that ended is used again.
		{"another connection from the same address", response{complete: true, conn: closed(connBroken)}, response{conn: closed(connOpen)}, unknown, 0},
	} {
		tc.last.began, tc.last.timeout = began, 10*time.Second
		tc.next.began = began.Add(tc.later)
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
			a := &response{conn: &conn{closing: s.state}, timeout: time.Minute}
			x.settle(a)
			from, most := x.begin(0, 1000)
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
