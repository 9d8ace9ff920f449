package prom

import (
	"net"
	"testing"
	"time"
)

// What became of an answer is read off its connection, and where that proves nothing it is taken as read.
func TestFateOfAnAnswer(t *testing.T) {
	began := time.Unix(1000, 0)
	ended := func(how end, after time.Duration) *conn {
		return &conn{Conn: &net.TCPConn{}, how: how, ended: began.Add(after)}
	}
	open := ended(notEnded, 0)
	for _, tc := range []struct {
		name  string
		last  answer
		next  answer
		fate  fate
		later time.Duration // until the next request
	}{
		{"not written whole", answer{conn: open}, answer{conn: open}, torn, 0},
		{"the same connection", answer{whole: true, conn: open}, answer{conn: open}, read, 0},
		{"the same address, not watched", answer{whole: true}, answer{}, read, 0},
		{"another address, not watched", answer{whole: true}, answer{remote: "b"}, assumed, 0},
		{"a proxy", answer{whole: true, proxied: true}, answer{}, assumed, 0},
		{"now a proxy", answer{whole: true}, answer{proxied: true}, assumed, 0},
		{"closed at once", answer{whole: true, conn: ended(inOrder, time.Millisecond)}, answer{remote: "b"}, read, 0},
		{"closed before the timeout", answer{whole: true, conn: ended(inOrder, 8*time.Second)}, answer{remote: "b"}, read, 0},
		{"closed shortly before the timeout", answer{whole: true, conn: ended(inOrder, 9500*time.Millisecond)}, answer{remote: "b"}, lostTrack, 0},
		{"closed shortly after the timeout", answer{whole: true, conn: ended(inOrder, 10900*time.Millisecond)}, answer{remote: "b"}, lostTrack, 0},
		{"closed long after the timeout", answer{whole: true, conn: ended(inOrder, 12*time.Second)}, answer{remote: "b"}, read, 0},
		{"reset", answer{whole: true, conn: ended(broken, time.Millisecond)}, answer{remote: "b"}, lostTrack, 0},
		{"reset long after", answer{whole: true, conn: ended(broken, time.Minute)}, answer{remote: "b"}, lostTrack, 0},
		{"closed by the server", answer{whole: true, conn: ended(closedOff, time.Minute)}, answer{remote: "b"}, assumed, 0},
		{"still open", answer{whole: true, conn: open}, answer{remote: "b"}, assumed, time.Minute},
		// The address of a connection that ended is used again.
		{"another connection from the same address", answer{whole: true, conn: ended(broken, 0)}, answer{conn: ended(notEnded, 0)}, lostTrack, 0},
	} {
		tc.last.began, tc.last.timeout = began, 10*time.Second
		tc.next.began = began.Add(tc.later)
		if got := tc.last.fate(&tc.next); got != tc.fate {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.fate)
		}
	}
}

// Seconds that did not arrive are sent again, in ever smaller answers, until one of a single second was sent twice.
// Answers after them grow again.
func TestSecondsAreSentAgain(t *testing.T) {
	x := newCursor(reader{}, 100, time.Time{})
	for i, tc := range []struct {
		open  int64 // second
		how   end   // of the answer's connection
		whole bool
		want  [2]int64
	}{
		{116, broken, true, [2]int64{100, 116}},
		{130, broken, true, [2]int64{100, 108}},
		{145, inOrder, true, [2]int64{100, 104}},
		{150, inOrder, true, [2]int64{104, 108}}, // no larger while there is doubt
		{155, inOrder, true, [2]int64{108, 112}},
		{155, inOrder, true, [2]int64{112, 116}},
		{155, inOrder, true, [2]int64{116, 124}},
		{160, broken, false, [2]int64{124, 140}}, // hangs up
		{160, broken, false, [2]int64{124, 132}},
		{160, broken, false, [2]int64{124, 128}},
		{160, broken, false, [2]int64{124, 126}},
		{160, broken, false, [2]int64{124, 125}},
		{160, broken, false, [2]int64{124, 125}}, // as often as it wants
		{160, broken, true, [2]int64{124, 125}},
		{160, broken, true, [2]int64{124, 125}},
		{160, broken, true, [2]int64{125, 126}}, // given up
		{160, inOrder, true, [2]int64{125, 126}},
		{160, inOrder, true, [2]int64{126, 128}},
		{160, inOrder, true, [2]int64{128, 132}},
	} {
		a := &answer{conn: &conn{how: tc.how}, timeout: time.Minute}
		x.settle(a)
		from, most := x.begin(0, 1000)
		to := min(tc.open, from+most)
		x.sent(a, from, to, tc.whole)
		if got := [2]int64{from, to}; got != tc.want {
			t.Errorf("answer %d has %v, want %v", i, got, tc.want)
		}
	}
	x.settle(&answer{})
	if n := x.count; n != (tally{delivered: 32, resent: 8 + 4 + 4 + 4 + 4 + 1 + 1, unconfirmed: 1}) {
		t.Errorf("%+v", n)
	}
}
