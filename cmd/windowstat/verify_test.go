package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Scripts use the status and the JSON of verify, people the table with its commands for old samples. Text from the
// server is escaped.
func TestVerify(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-5 * time.Hour).Truncate(time.Second)
	now, dir := begin, t.TempDir()
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	log, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		e := c.Resource("a b\x1b").Enter()
		e.Exit(nil)
		now = now.Add(time.Second)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	lacks, page := false, false
	var ends []string // end times of the queries
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case page:
			_, _ = io.WriteString(w, "<html>\x1b[2J")
		case r.URL.Path == "/api/v1/write":
			lacks = false
			time.Sleep(time.Second) // now the next second is old enough to be compared
		case r.URL.Path == "/api/v1/series":
			_, _ = io.WriteString(
				w,
				`{"status":"success","data":[{"__name__":"windowstat_persecond_pass","job":"it's","instance":"i",`+
					`"resource":"x"}]}`,
			)
		case r.URL.Path == "/api/v1/label/resource/values":
			_, _ = io.WriteString(w, `{"status":"success","data":["a b\u001b"]}`)
		case strings.HasPrefix(r.FormValue("query"), "last_over_time"):
			_, _ = io.WriteString(
				w,
				`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"it's",`+
					`"instance":"i"}}]}}`,
			)
		case r.URL.Path == "/api/v1/query":
			var list []string
			for name, value := range map[string]int64{
				`"windowstat_persecond_pass","resource":"a b\u001b"`: 1,
				`"windowstat_persecond_run"`:                         c.RunID(),
			} {
				if metric, _, _ := strings.Cut(name[1:], `"`); !strings.Contains(r.FormValue("query"), metric) {
					continue
				}
				var values []string
				for i := range int64(5) {
					if !lacks || i != 2 && i != 3 {
						values = append(values, fmt.Sprintf(`[%d,"%d"]`, begin.Unix()+i, value))
					}
				}
				list = append(
					list,
					fmt.Sprintf(
						`{"metric":{"__name__":%s,"job":"it's","instance":"i"},"values":[%s]}`,
						name,
						strings.Join(values, ","),
					),
				)
			}
			if strings.Contains(r.FormValue("query"), "pass") {
				ends = append(ends, r.FormValue("time"))
			}
			_, _ = fmt.Fprintf(
				w,
				`{"status":"success","data":{"resultType":"matrix","result":[%s]}}`,
				strings.Join(list, ","),
			)
		default:
			_, _ = io.WriteString(w, `{"status":"success","data":[]}`)
		}
	}))
	defer server.Close()
	verified := func(status int, more ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := []string{
			"windowstat", "verify", "--dir", dir, "--from", fmt.Sprint(begin.Unix()), "--url", server.URL, "--label",
			"job=it's", "--label", "instance=i",
		}
		if got := run(t.Context(), append(args, more...), &stdout, &stderr); got != status {
			t.Errorf("status %d, want %d: %s%s", got, status, &stdout, &stderr)
		}
		if text := stdout.String() + stderr.String(); strings.Contains(text, "\x1b") {
			t.Errorf("%q", text)
		}
		return stdout.String() + stderr.String()
	}
	expect := func(text string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	}
	expect(verified(0), "5 samples of 5 seconds compared", "no sample is missing")
	lacks = true
	expect(
		verified(1),
		`a b\x1b`,
		"seconds missing: 2",
		fmt.Sprintf("--from %d --to %d --heal --openmetrics gap-", begin.Unix()+2, begin.Unix()+3),
	)
	var report struct {
		Missing  int64 `json:"missing_seconds"`
		Findings []struct {
			Missing []struct{ From time.Time }
		}
	}
	if err := json.NewDecoder(strings.NewReader(verified(1, "--format", "json"))).Decode(&report); err != nil ||
		report.Missing != 2 ||
		!report.Findings[0].Missing[0].From.Equal(begin.Add(2*time.Second)) {
		t.Errorf("%v: %+v", err, report)
	}
	expect(verified(1, "--from=-30s"), "no second was compared")
	ends = nil
	expect(verified(0, "--heal"), "seconds missing: 2", "healed: 4 samples written", "no sample is missing")
	if len(ends) != 2 || ends[0] != ends[1] {
		t.Errorf("compared to %v: the comparison after healing must have the range of the healing", ends)
	}
	// With several logs the report has a line for each, and the command one status.
	lacks = true
	both := verified(1, "--dir", dir)
	if strings.Count(both, dir+": compared 5 seconds: 2 missing,") != 2 {
		t.Errorf("no two lines in %s", both)
	}
	// --openmetrics writes the missing samples, or all with --new, for promtool.
	file := filepath.Join(t.TempDir(), "gap.om")
	for _, tc := range []struct {
		flag    string
		samples int
	}{{"--heal", 4}, {"--new", 30 + 5}} {
		verified(0, tc.flag, "--openmetrics", file)
		b, err := os.ReadFile(file)
		if n := strings.Count(string(b), "\nwindowstat_persecond_"); err != nil || n != tc.samples ||
			!strings.HasSuffix(string(b), "# EOF\n") {
			t.Errorf("%s: %d samples, want %d: %v\n%s", tc.flag, n, tc.samples, err, b)
		}
	}
	// Seconds of an unknown run are written only with --run. Older versions wrote rows without a file of runs.
	if err := os.Remove(filepath.Join(dir, "shop-runs.json")); err != nil {
		t.Fatal(err)
	}
	rows, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.????-??-??"))
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	for _, name := range rows {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(
				name,
				regexp.MustCompile(`(?m)(__total_inbound_traffic__(\|\d+){8})\|\d+$`).ReplaceAll(b, []byte("$1")),
				0o600,
			)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect(verified(1, "--heal"), "not written with these labels", "the run of these seconds is unknown")
	expect(verified(0, "--heal", "--run", "unknown"), "healed: 2 samples written")
	expect(verified(2, "--heal", "--run", "-3", "--run", "x"), `--run: "-3" is not a run`, `--run: "x" is not a run`)
	expect(verified(2, "--run=7", "--openmetrics=x"), "--run: needs --heal", "--openmetrics: needs --heal")
	expect(verified(2, "--new", "--heal"), "--new: cannot be combined with --heal")
	expect(verified(2, "--new", "--openmetrics=x", "--dir", dir),
		"--dir: --new and --openmetrics allow only one directory")
	page = true
	expect(verified(1), "check the URL", "the comparison is incomplete")
	expect(
		verified(2, "--url=ftp://x", "--label=resource=a", "--delay=0s", "--format=xml", "--remote-write=http://x",
			"--app=till"),
		`--url: "ftp://x"`,
		`--label: "resource"`,
		"--delay: 0",
		"--format:",
		"--remote-write: needs --heal",
		"--app: there is no log",
	)
	expect(verified(2, "--heal", "--remote-write=ftp://x"), `--remote-write: "ftp://x"`)
}
