package metriclog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// The log has the lines of sealed seconds, with escaped names, for resources with events or calls in flight. The last
// line of each second is the total with its run.
func TestLines(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.calls("checkout", 3, 7*ms)
	r.Resource("checkout").Block("")
	_ = r.Resource("cart").Do(func() error { r.now = r.now.Add(2500 * time.Microsecond); return errors.New("x") })
	r.Resource("idle")
	long := r.Resource("long|\n\x00name").Enter()
	if r.flush(t); len(r.files(t)) != 0 {
		t.Errorf("the open second was written: %v", r.files(t))
	}
	r.now = r.now.Add(time.Second)
	r.flush(t)
	r.now = r.now.Add(2 * time.Second)
	long.Exit(nil)
	r.now = r.now.Add(time.Second)
	r.flush(t)
	r.flush(t)
	want := strings.ReplaceAll(`1767323045000|2026-01-02 03:04:05|checkout|3|1|3|0|7|0|1|0
1767323045000|2026-01-02 03:04:05|cart|1|0|1|1|2|0|1|0
1767323045000|2026-01-02 03:04:05|long\x7c\x0a\x00name|1|0|0|0|0|0|1|0
1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323046000|2026-01-02 03:04:06|long\x7c\x0a\x00name|0|0|0|0|0|0|1|0
1767323046000|2026-01-02 03:04:06|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323047000|2026-01-02 03:04:07|long\x7c\x0a\x00name|0|0|0|0|0|0|1|0
1767323047000|2026-01-02 03:04:07|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323048000|2026-01-02 03:04:08|long\x7c\x0a\x00name|0|0|1|0|3000|0|1|0
1767323048000|2026-01-02 03:04:08|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
`, "RUN", fmt.Sprint(r.RunID()))
	if got := r.read(t, today); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	metrics := r.metrics()
	if metrics["metriclog_rows_total"] != 10 || metrics["metriclog_seconds_total"] != 4 ||
		metrics["metriclog_errors_total"] != 0 ||
		metrics["metriclog_lost_seconds_total"] != 0 ||
		metrics["metriclog_last_second_timestamp_seconds"] != 1767323048 {
		t.Errorf("self-metrics %v", metrics)
	}
}

// Parse accepts lines with and without a run, and counts up to the maximum. It rejects lines with missing, surplus,
// malformed or excessive fields.
func TestParse(t *testing.T) {
	row, err := metriclog.Parse("1767323045000|2026-01-02 03:04:05|GET /a|3|1|2|1|7|4|5|0\n")
	want := metriclog.Row{
		Start: time.Unix(1767323045, 0).UTC(), Resource: "GET /a",
		Pass: 3, Block: 1, Success: 2, Exception: 1, RT: 7 * ms, OccupiedPass: 4, Concurrency: 5,
	}
	if err != nil || row != want {
		t.Errorf("%+v, %v", row, err)
	}
	total, err := metriclog.Parse(
		"1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|3|1|2|1|7|4|5|0|7238955192732475\n")
	if err != nil || total.Run != 7238955192732475 || total.Concurrency != 5 {
		t.Errorf("%+v, %v", total, err)
	}
	const most = 1<<63 - 1 // counts saturate at this value
	row, err = metriclog.Parse(
		"1|d|r|9223372036854775807|1|9223372036854775807|1|1|9223372036854775807|9223372036854775807|0")
	if err != nil || row.Pass != most || row.Success != most || row.OccupiedPass != most || row.Concurrency != most {
		t.Errorf("%+v, %v", row, err)
	}
	for _, line := range []string{
		"1|d|r|9223372036854775808|1|1|1|1|1|1|0",
		"",
		"1|d|r|1|1|1|1|1|1|1|0|0|0",
		"1|d|r|1|1|1|1|1|1|1|0|x",
		"1|d|r|1|1|1|1",
		"x|d|r|1|1|1|1|1|1|1|0",
		"1x|d|r|1|1|1|1|1|1|1|0",
		"1|d|r|1|1|-|1|1|1|1|0",
		"1|d|r|1|1|1|1|18446744073709551615|1|1|0", // Sentinel Go, after the clock was set back
		"1|d|r|1|1|1|1|9223372036854775807|1|1|0",
		"1|d|r|1|1|1|1|1|1|99999999999999999999|0",
		"1|d|r|1||1|1|1|1|1|0",
		"1|d|r|1|1|1|1|1|1|1|",
		"1|d|r|1|1|1|1|1|1|1x1",
		"1|d|r",
		"1|d",
	} {
		if _, err := metriclog.Parse(line); err == nil {
			t.Errorf("no error for %q", line)
		}
	}
}
