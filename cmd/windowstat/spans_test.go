package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// sendSpan sends a span that ended at a time, and returns the response.
func sendSpan(t *testing.T, url string, id int, end time.Time) string {
	t.Helper()
	body := fmt.Sprintf(
		`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},`+
			`"scopeSpans":[{"spans":[`+
			`{"traceId":"%032x","spanId":"%016x","name":"process orders","kind":5,"startTimeUnixNano":"%d",`+
			`"endTimeUnixNano":"%d"}]}]}]}`,
		id,
		id,
		end.Add(-time.Millisecond).UnixNano(),
		end.UnixNano(),
	)
	r, err := http.Post(url+"/v1/traces", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	answer, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %s", r.Status, err, answer)
	}
	return string(bytes.TrimSpace(answer))
}

// When a process ends, its metric log has all received spans, in their seconds. The next process adds nothing to these
// seconds.
func TestOTLPContinuesItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{
		"otlp",
		anyPort,
		"--spans.http-listen-address=127.0.0.1:0",
		"--spans.grpc-listen-address=127.0.0.1:0",
		"--metric-log.dir",
		dir,
	}
	p := launch(t, args...)
	url := p.find(t, `otlp +(http://\S+) and gRPC`)
	middle := time.Now().Truncate(time.Second).Add(-3500 * time.Millisecond)
	for i, at := range []time.Time{middle, middle.Add(time.Second), middle.Add(time.Second), middle} {
		if answer := sendSpan(t, url, i+1, at); answer != "{}" {
			t.Error(answer)
		}
	}
	if answer := sendSpan(t, url, 5, middle.Add(-time.Minute)); !strings.Contains(answer, `"rejectedSpans":"1"`) ||
		!strings.Contains(answer, "1 later than the tolerance of 30s") {
		t.Error(answer)
	}
	if status := p.end(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, p.output())
	}

	p = launch(t, args...)
	url = p.find(t, `otlp +(http://\S+) and gRPC`)
	if answer := sendSpan(t, url, 6, middle); !strings.Contains(answer, `"rejectedSpans":"1"`) {
		t.Errorf("a span of a second that is logged: %s", answer)
	}
	if answer := sendSpan(t, url, 7, middle.Add(3*time.Second)); answer != "{}" {
		t.Error(answer)
	}
	page := strings.TrimSpace(p.find(t, `metrics +(http://\S+)`))
	_, metrics := get(t, page)
	for _, want := range []string{
		`windowstat_otlp_spans_total{result="late"} 1`,
		`windowstat_otlp_spans_total{result="counted"} 1`, "windowstat_otlp_sampled_spans_total 0",
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if status := p.end(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, p.output())
	}

	isConsumer := func(resource string) bool { return resource == "shop: inbound process orders" }
	rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{Match: isConsumer})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]int64{}
	for row := range rows.All() {
		got[row.Start.Unix()-middle.Unix()] += row.Pass
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != 2 || got[1] != 2 || got[3] != 1 {
		t.Errorf("passed by second: %v, want 2, 2, 0, 1", got)
	}
}

func TestOTLPBadArguments(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tc := range []struct {
		args   []string
		status int
		says   []string
	}{
		{
			[]string{"--tolerance=1500ms", "--max-spans=10", "--spans.http-listen-address=nowhere", "x"},
			2,
			[]string{
				"--tolerance: 1.5s is not whole seconds", "--max-spans: 10 is less",
				"--spans.http-listen-address", "takes no arguments",
			},
		},
		{[]string{"--tolerance=1h"}, 2, []string{"--tolerance: 1h0m0s is not whole seconds from 1s to 4m0s"}},
		{[]string{"--tolerance=0s", "--max-resources=-1"}, 2, []string{"--tolerance: 0s", "--max-resources: -1"}},
		{[]string{"--metric-log.app=x"}, 2, []string{"--metric-log.app: needs --metric-log.dir"}},
		{
			[]string{"--spans.http-listen-address=127.0.0.1:0", "--spans.grpc-listen-address=" + taken.Addr().String()},
			1,
			[]string{"--spans.grpc-listen-address: listen tcp"},
		},
	} {
		p := launch(t, append([]string{"otlp", anyPort}, tc.args...)...)
		status := p.wait(t)
		for _, want := range tc.says {
			if status != tc.status || !strings.Contains(p.output(), want) {
				t.Errorf("%q: status %d, want %d and %q:\n%s", tc.args, status, tc.status, want, p.output())
			}
		}
	}
}
