package logquery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

func TestSummary(t *testing.T) {
	at := time.Date(2026, 1, 2, 23, 59, 58, 0, time.UTC)
	s := NewSummary(time.FixedZone("here", 3600))
	row := func(second int, pid int, resource string, pass, block, complete, exception int64, rt time.Duration) {
		s.Add(&metriclog.Row{
			Start: at.Add(time.Duration(second) * time.Second), App: "shop", PID: pid, Resource: resource,
			Pass: pass, Block: block, Success: complete, Exception: exception, RT: rt * time.Millisecond,
		})
	}
	row(0, 1, "a\x1b", 10, 0, 10, 0, 5)
	row(0, 1, collector.InboundTotal, 1000, 0, 10, 0, 5)
	row(1, 1, "a\x1b", 6, 2, 6, 3, 9)
	row(1, 2, "a\x1b", 7, 0, 7, 0, 2) // another process in the same second: 13 in all
	row(1, 2, "quiet", 0, 1, 0, 0, 0)
	row(3, 1, "a\x1b", 12, 0, 12, 0, 1)
	row(3, 1, "busy", 400, 0, 399, 0, 1)
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	const want = `4 seconds, from 2026-01-03 00:59:58+01:00 to 2026-01-03 01:00:01+01:00

  pass  per second  peak        at  block    share  complete  exception  share  worst rt        at  resource
   400         100   400  01:00:01      0    0.00%       399          0  0.00%       1ms  01:00:01  busy
    35        8.75    13  00:59:59      2    5.41%        35          3  8.57%       9ms  00:59:59  a\x1b
     0           0     0         -      1  100.00%         0          0      -         -         -  quiet
  1000         250  1000  00:59:58      0    0.00%        10          0  0.00%       5ms  00:59:58  ` +
		`__total_inbound_traffic__
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	row(100_000, 1, "other day", 1, 0, 1, 0, 1)
	s.Add(&metriclog.Row{Start: at.Add(100_000 * time.Second), App: "till", Resource: "busy", Pass: 1})
	b.Reset()
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"  2026-01-04 04:46:38+01:00  ", "  till: busy\n", "  shop: busy\n"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in\n%s", part, b.String())
		}
	}
}

func TestSummaryIsBounded(t *testing.T) {
	s := NewSummary(time.UTC)
	for i := range maxSummed + 1000 {
		s.Add(&metriclog.Row{Start: time.Unix(1, 0), Resource: fmt.Sprint(i), Pass: 1})
	}
	s.Add(&metriclog.Row{Start: time.Unix(1, 0), Resource: collector.InboundTotal, Pass: 5})
	if n := len(s.byApp[""]); n != maxSummed+2 || n != s.n {
		t.Errorf("%d names", n)
	}
	if x := s.byApp[""][collector.Other]; x == nil || x.Pass != 1000 {
		t.Errorf("%+v", x)
	}
	if err := NewSummary(time.UTC).Write(nil); err != nil {
		t.Error(err)
	}
}
