package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// accessLine returns a line in the format common.
func accessLine(at time.Time, path string, status int) string {
	return fmt.Sprintf("::1 - - [%s] \"GET %s HTTP/1.1\" %d 1\n", at.UTC().Format("02/Jan/2006:15:04:05 -0700"), path,
		status)
}

// accessLog writes a file with one line per second.
func accessLog(t *testing.T, statuses ...int) string {
	t.Helper()
	var b strings.Builder
	for i, status := range statuses {
		b.WriteString(accessLine(time.Date(2020, 1, 2, 3, 4, i, 0, time.UTC), "/a", status))
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayCommand(t *testing.T) {
	path, dir := accessLog(t, 200, 200, 429, 503, 404), t.TempDir()
	p := launch(t, "replay", "--metric-log.dir="+dir, path)
	if status := p.wait(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, p.output())
	}
	for _, want := range []string{
		`(?m)^ +5 lines$`, `(?m)^ +2 calls with status 200$`, `(?m)^ +1 calls with status 429$`,
		`the log has no durations, so response times`,
		`5 seconds, from 2020-01-02 03:04:00\+00:00 to 2020-01-02 03:04:04`,
		`(?m)^ +3 +0\.6 +1 +03:04:01 +1 +25\.00% +3 +1 +33\.33% +- +- +GET /a$`,
		`(?m)^ +1 calls counted for unmatched, because`,
	} {
		if !regexp.MustCompile(want).MatchString(p.output()) {
			t.Errorf("no %s in\n%s", want, p.output())
		}
	}
	if strings.Contains(p.output(), "\x1b") || strings.Contains(p.output(), "\r") {
		t.Errorf("a bar, though this is no terminal: %q", p.output())
	}
	if got, want := logRows(t, dir), 10; len(got) != want {
		t.Errorf("%d rows, want %d: %+v", len(got), want, got)
	}

	// A second replay does not change the seconds of the log.
	before := logRows(t, dir)
	p = launch(t, "replay", "--metric-log.dir="+dir, path)
	if status := p.wait(t); status != 1 || strings.Count(p.output(), "has seconds up to") != 1 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	if got := logRows(t, dir); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("got %v, want %v", got, before)
	}

	p = launch(t, "replay", "--exception-status=404", "--block-status=", "--path-depth=1", path)
	if status := p.wait(t); status != 0 ||
		!regexp.MustCompile(`(?m)^ +4 .* 0 +0\.00% +4 +1 +25\.00% +- +- +GET /a$`).MatchString(p.output()) {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}

func logRows(t *testing.T, dir string) (all []metriclog.Row) {
	t.Helper()
	rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows.All() {
		all = append(all, row)
	}
	if err := rows.Close(); err != nil || rows.Err() != nil {
		t.Fatal(err, rows.Err())
	}
	return all
}

// A replay names the requests of a tolerant service like the proxy, with routes and without.
func TestReplayOfLoosePaths(t *testing.T) {
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(accessLine(at, "/Users/jane/", 200)+accessLine(at, "/users/joe;x=1",
		200)+accessLine(at, "/A%20", 200)+accessLine(at, "/a/", 200)), 0o644); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "replay", "--loose-paths", "--route=GET /Users/{id}", path)
	if status := p.wait(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, p.output())
	}
	for _, want := range []string{`(?m)^ +2 .* GET /Users/\{id\}$`, `(?m)^ +1 .* GET /a$`} {
		if !regexp.MustCompile(want).MatchString(p.output()) {
			t.Errorf("no %s in\n%s", want, p.output())
		}
	}
}

func TestReplayErrors(t *testing.T) {
	path := accessLog(t, 200)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{}, 2, []string{"which access log?"}},
		{[]string{
			"--format=x", "--nginx-format=x", "--zone=Nowhere", "--tolerance=1500ms", "--exception-status=5xx,6",
			"--block-status=429,x",
			"--path-depth=0", "--max-resources=0", "--fail-above=2", "--metric-log.app=x", "--web.listen-address=:1",
			"--limits.file=x", "-", "-",
		}, 2, []string{
			"--format: ", "--nginx-format: ", "--format: cannot be combined with --nginx-format", "--zone: \"Nowhere\"",
			"--tolerance: 1.5s", "--exception-status: \"6\"",
			"--block-status: \"x\"", "--path-depth: 0", "--max-resources: 0", "--fail-above: 2",
			"--metric-log.app: needs", "--web.listen-address: needs --follow",
			"--limits.file: needs --follow", "- is given twice",
		}},
		{[]string{"--block-status=429,503", path}, 2, []string{"--block-status: 503 is in --exception-status, too"}},
		{[]string{path, path}, 2, []string{path + " is given twice"}},
		{[]string{path, link}, 2, []string{path + " and " + link + " are the same file"}},
		{[]string{"--follow", path + "[", path + "1"}, 2, []string{path + "[: syntax error in pattern, such as a " +
			"[ without a ]"}},
		{[]string{"--follow", path + "1", path + "?"}, 1, []string{path + "1: no such file"}},
		{[]string{"--follow", path + "?"}, 1, []string{"no file matches [\"" + path + "?\"] yet; with a format it " +
			"can be waited for"}},
		{[]string{"--tolerance=25h", path}, 2, []string{"--tolerance: 25h"}},
		{[]string{"--fail-above=NaN", path}, 2, []string{"--fail-above: NaN"}},
		{[]string{"--metric-log.dir=", path}, 2, []string{"--metric-log.dir: is empty"}},
		{[]string{"--metric-log.dir=" + path, path}, 1, []string{"--metric-log.dir: ", "not a directory"}},
		{
			[]string{"--metric-log.dir=" + t.TempDir(), "--metric-log.app=a/b", path},
			2,
			[]string{"--metric-log.app: \"a/b\""},
		},
		{[]string{path + "1", path, path + "2"}, 1, []string{path + "1: no such file", path + "2: no such file"}},
		{[]string{"--follow", path + "1"}, 1, []string{path + "1: no such file"}},
	} {
		p := launch(t, append([]string{"replay"}, c.args...)...)
		if status := p.wait(t); status != c.status {
			t.Errorf("%v: status %d, want %d", c.args, status, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(p.output(), want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, p.output())
			}
		}
	}
}

// Unreadable lines are printed with escaped characters. Too many of them are an error.
func TestReplayOfUnreadableLines(t *testing.T) {
	path := accessLog(t, 200, 200, 200, 200)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x1b]0;title\x07\x00\xff\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for share, want := range map[string]int{"0.1": 1, "0.19": 1, "0.2": 0, "1": 0} {
		p := launch(t, "replay", "--fail-above="+share, path)
		if status := p.wait(t); status != want {
			t.Errorf("--fail-above=%s: status %d, want %d", share, status, want)
		}
		out := p.output()
		if !strings.Contains(out, path+":5: ") || !strings.Contains(out, `"\x1b]0;title\a\x00\xff\n"`) ||
			strings.ContainsAny(out, "\x1b\x07\x00") {
			t.Errorf("%q", out)
		}
		if (want == 1) != strings.Contains(out, "1 of 5 lines are not counted; --fail-above is "+share) {
			t.Errorf("%s", out)
		}
	}
}

// A followed log is served like a service. The page and the metric log have the same counts.
func TestReplayFollow(t *testing.T) {
	t.Parallel()
	path, dir := filepath.Join(t.TempDir(), "access.log"), t.TempDir()
	p := launch(t, "replay", "--follow", "--format=common", "--tolerance=1s", "--metric-log.dir="+dir, anyPort, path)
	p.find(t, `following .*, (2s) behind`) // the tolerance and one second
	page := p.find(t, `metrics +(http\S+)`)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const calls = 300
	for i := range calls {
		if _, err := f.WriteString(accessLine(time.Now(), []string{"/a", "/b"}[i%2],
			[]int{200, 500, 429}[i%3])); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Millisecond)
	}
	passed := regexp.MustCompile(
		`(?m)^windowstat_persecond_(?:pass|block)\{resource="(?:GET /[ab]|unmatched)"\} (\d+) (\d+)$`,
	)
	onPage := map[int64]int64{}
	for deadline := time.Now().Add(maxWait); ; time.Sleep(50 * time.Millisecond) {
		status, body := get(t, page+"/seconds?window=60s")
		if status != http.StatusOK || strings.Contains(body, "_rt_") {
			t.Fatalf("%d:\n%s", status, body)
		}
		sum := int64(0)
		clear(onPage)
		for _, m := range passed.FindAllStringSubmatch(body, -1) {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			at, _ := strconv.ParseInt(m[2], 10, 64)
			if sum += n; n > 0 {
				onPage[at/1000] += n
			}
		}
		if sum == calls {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d calls are on the page:\n%s", sum, calls, body)
		}
	}
	if status, body := get(t, page); status != http.StatusOK || strings.Contains(body, "_rt_") ||
		!strings.Contains(body, `windowstat_pass_total{resource="GET /a"} 99`) {
		t.Errorf("%d:\n%s", status, body)
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d", status)
	}
	inLog := map[int64]int64{}
	for _, row := range logRows(t, dir) {
		if row.Resource != collector.InboundTotal {
			inLog[row.Start.Unix()] += row.Pass + row.Block
		}
	}
	if fmt.Sprint(inLog) != fmt.Sprint(onPage) {
		t.Errorf("the log has %v, the page %v", inLog, onPage)
	}
	if !strings.Contains(p.output(), fmt.Sprintf("%12d lines\n", calls)) {
		t.Errorf("%s", p.output())
	}
}

// An unreadable compressed log is named as such and not printed. Fields that a format ignores are listed.
func TestReplayReportsUnreadParts(t *testing.T) {
	dir := t.TempDir()
	line := strings.TrimSpace(accessLine(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), "/a", 200)) + ` "-" "agent" `
	for name, c := range map[string]struct {
		text, want string
		status     int
	}{
		"a.bz2": {"BZh91AY&SY\x00\x01\x1b[2J", "packed with bzip2: decompress it first", 1},
		"a.xz":  {"\xfd7zXZ\x00\x1b[2J", "packed with xz: decompress it first", 1},
		"extra": {line + "\"10.0.0.1\"\n", `a is read as combined, without the rest of its lines: "\"10.0.0.1\""`, 0},
		"json": {
			`{"time":"2020-01-02T03:04:05Z","duration":250,"status":200}` + "\n",
			`a has no unit for its durations, which are read as seconds: "{\"time`, 0,
		},
		"caddy": {
			`{"ts":1577934245,"duration":0.25,"status":200,"request":{"uri":"/a","method":"GET"}}` + "\n",
			" 250ms ", 0,
		},
		"timed":    {line + "rt=0.250\n", " 250ms ", 0},
		"upstream": {line + "0.250 0.200\n", " 250ms ", 0},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.want = strings.Replace(c.want, "a is read", path+" is read", 1)
		c.want = strings.Replace(c.want, "a has no unit", path+" has no unit", 1)
		p := launch(t, "replay", path)
		if status := p.wait(t); status != c.status || strings.Contains(p.output(), "unit") != (name == "json") ||
			!strings.Contains(p.output(), c.want) ||
			strings.Contains(p.output(), "\x1b") {
			t.Errorf("%s: status %d, no %s in\n%s", name, status, c.want, p.output())
		}
	}
}

// The format states the unit of durations in JSON. The report counts times of an hour that clocks showed twice.
func TestReplayReportsAssumptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	if err := os.WriteFile(path, []byte(`{"time":"2025-10-26 02:30:00","duration":250,"status":200}`+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"json": "4m10s", "json-ms": "250ms", "json-us": "250µs",
		"json-ns": "0s",
	} {
		p := launch(t, "replay", "--format="+format, "--zone=Europe/Berlin", path)
		if status := p.wait(t); status != 0 || !strings.Contains(p.output(), " "+want+" ") ||
			strings.Contains(p.output(), "unit") ||
			!strings.Contains(p.output(), " 1 lines in an hour that clocks showed twice, counted in the hour nearer") {
			t.Errorf("%s: status %d\n%s", format, status, p.output())
		}
	}
}
