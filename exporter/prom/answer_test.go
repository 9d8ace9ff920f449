package prom

import (
	"net"
	"testing"
	"time"
)

// What became of an answer is read off its connection, and where that proves nothing it is taken as read.
func TestFateOfAnAnswer(t *testing.T) {
	began := time.Unix(1000, 0)
	ended := func(how end) *conn { return &conn{Conn: &net.TCPConn{}, how: how} }
	open := ended(notEnded)
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
		{"closed in order", answer{whole: true, conn: ended(inOrder)}, answer{remote: "b"}, read, 0},
		{"reset", answer{whole: true, conn: ended(broken)}, answer{remote: "b"}, lostTrack, 0},
		{"closed by the server", answer{whole: true, conn: ended(closedOff)}, answer{remote: "b"}, assumed, 0},
		{"still open", answer{whole: true, conn: open}, answer{remote: "b"}, assumed, time.Minute},
		// The address of a connection that ended is used again.
		{"another connection from the same address", answer{whole: true, conn: ended(broken)}, answer{conn: ended(notEnded)}, lostTrack, 0},
	} {
		tc.last.began, tc.last.timeout = began, 10*time.Second
		tc.next.began = began.Add(tc.later)
		if got := tc.last.fate(&tc.next); got != tc.fate {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.fate)
		}
	}
}

// What did not arrive is sent again: if it was much, in ever smaller answers, and those after them grow again; six times,
// if it was written whole.
func TestSecondsAreSentAgain(t *testing.T) {
	const much, little = 10_000, 100 // samples of a second
	for _, tc := range []struct {
		name    string
		samples int
		answers []sent
		want    tally
	}{
		{"large answers", much, []sent{
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
			{160, broken, false, [2]int64{124, 126}}, // small enough
			{160, broken, false, [2]int64{124, 126}},
			{160, inOrder, true, [2]int64{124, 126}},
			{160, inOrder, true, [2]int64{126, 130}},
			{160, inOrder, true, [2]int64{130, 138}},
		}, tally{delivered: 38, resent: 8 + 4 + 4 + 4 + 4}},
		{"small answers", little, []sent{
			{105, broken, true, [2]int64{100, 105}},
			{110, broken, true, [2]int64{100, 110}},
			{115, broken, false, [2]int64{100, 115}},
			{120, broken, false, [2]int64{100, 120}},
			{125, inOrder, true, [2]int64{100, 125}},
		}, tally{delivered: 25, resent: 5 + 10}},
		{"never read", little, []sent{
			{105, broken, true, [2]int64{100, 105}},
			{106, broken, true, [2]int64{100, 106}},
			{107, broken, true, [2]int64{100, 107}},
			{108, broken, true, [2]int64{100, 108}},
			{109, broken, true, [2]int64{100, 109}},
			{110, broken, true, [2]int64{100, 110}},
			{111, broken, true, [2]int64{110, 111}}, // given up
			{112, inOrder, true, [2]int64{110, 112}},
		}, tally{delivered: 12, unconfirmed: 10, resent: 5 + 6 + 7 + 8 + 9 + 1}},
	} {
		x := newCursor(reader{}, 100, time.Time{})
		for i, s := range tc.answers {
			a := &answer{conn: &conn{how: s.how}, timeout: time.Minute}
			x.settle(a)
			from, most := x.begin(0, 1000)
			to := min(s.open, from+most)
			x.sent(a, from, to, int(to-from)*tc.samples, s.whole)
			if got := [2]int64{from, to}; got != s.want {
				t.Errorf("%s: answer %d has %v, want %v", tc.name, i, got, s.want)
			}
		}
		x.settle(&answer{})
		if x.count != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, x.count, tc.want)
		}
	}
}

// sent is an answer of the test.
type sent struct {
	open  int64 // second
	how   end   // of the answer's connection
	whole bool
	want  [2]int64
}
