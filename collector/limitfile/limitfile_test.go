package limitfile_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
)

const good = `
limits:
  - resource: GET /search
    qps: 100
  - resource: /admin/*
    origin: mobile
    qps: 20
    concurrency: 5
    strict: true
  - resource: GET /search
    qps: 80
    concurrency: 4
    dry_run: true
  - {resource: "*", concurrency: 0, dry_run: false}
`

var goodLimits = []collector.Limit{
	{Resource: "GET /search", Count: 100},
	{Resource: "/admin/*", Origin: "mobile", Count: 20, Strict: true},
	{Resource: "/admin/*", Origin: "mobile", Grade: collector.Concurrency, Count: 5},
	{Resource: "GET /search", Count: 80, DryRun: true},
	{Resource: "GET /search", Grade: collector.Concurrency, Count: 4, DryRun: true},
	{Resource: "*", Grade: collector.Concurrency},
}

func equal(a, b []collector.Limit) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"yaml": good,
		"json": `{"limits": [{"resource": "GET /search", "qps": 100},
			{"resource": "/admin/*", "origin": "mobile", "qps": 20, "concurrency": 5, "strict": true},
			{"resource": "GET /search", "qps": 80, "concurrency": 4, "dry_run": true},
			{"resource": "*", "concurrency": 0}]}`,
	} {
		if got, err := limitfile.Parse([]byte(text)); err != nil || !equal(got, goodLimits) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, none := range []string{"limits: []", `{"limits":[]}`} {
		if got, err := limitfile.Parse([]byte(none)); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", none, got, err)
		}
	}
}

// Parse reports all errors together, each with its line.
func TestParseErrors(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", []string{"the file is empty"}},
		{"# nothing", []string{"the file is empty"}},
		{"limits:", []string{"line 1: limits is empty; it must be a list"}},
		{"- a", []string{"line 1: the file is a list; it must have the fields limits"}},
		{"limit: []", []string{`line 1: unknown field "limit"; the fields are limits`}},
		{"limits: {a: b}", []string{"limits is a mapping"}},
		{"limits: [x]", []string{`line 1: a limit is "x"; it must have the fields resource`}},
		{"limits: []\nlimits: []", []string{"line 2: duplicate field limits"}},
		{"limits: [}", []string{"did not find"}},
		{
			"limits:\n  - {resource: \"\", concurrency: 0}\n",
			[]string{"line 2: resource is empty; it must be a name; use * for all resources"},
		},
		{
			"limits:\n  - qps: 1\n  - resource: a\n  - resource: b\n    qps: -1\n    rps: 3\n    strict: maybe\n",
			[]string{
				"line 2: limit without a resource", "line 3: limit without qps or concurrency",
				`line 5: qps is "-1"; it must be a whole number of 0 or more`,
				`line 6: unknown field "rps"`, `line 7: strict is "maybe"`,
			},
		},
		{"limits: [{resource: a, qps: .nan}]", []string{`qps is ".nan"`}},
		{"limits: [{resource: a, qps: .inf}]", []string{`qps is ".inf"`}},
		{"limits: [{resource: a, qps: 1.5}]", []string{`qps is "1.5"`}},
		{"limits: [{resource: a, qps: 1e3}]", []string{`qps is "1e3"`}},
		{"limits: [{resource: a, qps: }]", []string{"qps is empty"}},
		{"limits: [{resource: a, qps: [1]}]", []string{"qps is a list"}},
		{"limits: [{resource: a, qps: 99999999999999999999}]", []string{"qps is"}},
		{"limits: [{resource: , qps: 1}]", []string{"resource is empty"}},
		{"limits: [{resource: a, concurrency: 1, strict: true}]", []string{"strict without qps"}},
		{
			"limits: [{resource: a, qps: 1}, {resource: a, qps: 2}]",
			[]string{`line 1: duplicate limit "qps a"; the first is in line 1`},
		},
		{"limits:\n- {resource: a, qps: 1}\n- {resource: a, qps: 1, dry_run: true}\n" +
			"- {resource: a, qps: 3, dry_run: true}", []string{
			`line 4: duplicate limit "qps a"; the first is in line 3`,
		}},
		{
			"limits:\n- {resource: a, qps: 1, concurrency: 2}\n- {resource: b, qps: 2}\n- {resource: a, qps: 3}",
			[]string{`line 4: duplicate limit "qps a"; the first is in line 2`},
		},
		{
			"limits: [{resource: " + strings.Repeat("x", 201) + ", qps: 1}, {resource: machine-root, qps: 1}]",
			[]string{"line 1: resource \"xxx", "line 1: machine-root is the reserved name of a view"},
		},
		{"limits: []\n---\nlimits: []", []string{"a second document"}},
		{"limits: []\n--- junk\n:::", []string{"line 3"}},
		{"limits: [{resource: *, qps: 1}]", []string{"need quotes"}},
		{"limits: [{resource: a: b, qps: 1}]", []string{"need quotes"}},
		{"a: &x [*x]\nlimits: []", []string{`unknown field "a"`}},
		{"limits: &x [*x]", []string{"a limit is an alias"}},
	} {
		got, err := limitfile.Parse([]byte(tc.text))
		if err == nil || got != nil {
			t.Errorf("%q: %v, %v", tc.text, got, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: the error does not contain %q:\n%v", tc.text, want, err)
			}
		}
		if n := strings.Count(err.Error(), "\n") + 1; n != len(tc.want) {
			t.Errorf("%q: %d errors, want %d:\n%v", tc.text, n, len(tc.want), err)
		}
	}
}

// Regression: an empty origin, for example from a template with an unset variable, limited all origins together. The
// origin "*" limited only calls whose origin has the literal name "*", and there were none. Both origins are now
// errors, like all ambiguous values. The errors name the valid values.
func TestRegressionEmptyOriginLimitedAllOrigins(t *testing.T) {
	for text, want := range map[string]string{
		"origin: ''": "origin is empty; it must be one name, not a pattern; " +
			"omit it for all origins",
		`origin: ""`:                       "origin is empty; it must be one name",
		"origin: ":                         "origin is empty; it must be one name",
		"origin: ~":                        "origin is empty; it must be one name",
		"origin: '*'":                      `origin is "*"; it must be one name, not a pattern`,
		"origin: mobile-*":                 `origin is "mobile-*"; it must be one name, not a pattern`,
		"origin: [a, b]":                   "origin is a list; it must be one name",
		"origin: !!binary aGVsbG8=":        `origin is "aGVsbG8=" with the tag !!binary; it must be one name`,
		"origin: a, origin: b":             "duplicate field origin",
		"concurrency: ":                    "concurrency is empty; it must be a whole number",
		"concurrency: 010":                 `concurrency is "010"; it must be a whole number`,
		"concurrency: 0x10":                `concurrency is "0x10"; it must be a whole number`,
		"concurrency: 1_000":               `concurrency is "1_000"; it must be a whole number`,
		"concurrency: 5.0":                 `concurrency is "5.0"; it must be a whole number`,
		"concurrency: !rate 5":             `concurrency is "5" with the tag !rate; it must be a whole number`,
		"concurrency: true":                `concurrency is "true"; it must be a whole number`,
		"concurrency: 9223372036854775808": `concurrency is "9223372036854775808"; it must be a whole number`,
		"strict: ":                         "strict is empty; it must be true or false",
		"strict: 'true'":                   `strict is "true"; it must be true or false`,
		"strict: []":                       "strict is a list; it must be true or false",
		"dry_run: ":                        "dry_run is empty; it must be true or false",
		"dry_run: 'yes'":                   `dry_run is "yes"; it must be true or false`,
		"dry_run: true, dry_run: true":     "duplicate field dry_run",
	} {
		limits, err := limitfile.Parse([]byte("limits: [{resource: a, qps: 1, " + text + "}]"))
		if err == nil || limits != nil || !strings.Contains(err.Error(), "line 1: "+want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v; want %s", text, limits, err, want)
		}
	}
	// All of these names are valid origins, with or without quotes.
	for _, name := range []string{"404", "true", "1.50", "2020-01-01", "' '", "_other", "null-device", "'null'"} {
		limits, err := limitfile.Parse([]byte("limits: [{resource: a, qps: 1, origin: " + name + "}]"))
		if err != nil || len(limits) != 1 || limits[0].Origin != strings.Trim(name, "'") {
			t.Errorf("%s: %v, %v", name, limits, err)
		}
	}
}

// The number of reported errors is bounded.
func TestManyErrors(t *testing.T) {
	_, err := limitfile.Parse([]byte("limits:\n" + strings.Repeat("- x\n", 1000)))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and 980 more errors") {
		t.Error(err)
	}
}

func TestReadIsBounded(t *testing.T) {
	if _, err := limitfile.Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "limits.yml")
	if _, err := limitfile.Read(path); err == nil {
		t.Error("a missing file is no error")
	}
	if err := os.WriteFile(path, []byte("limits: []\n"+strings.Repeat("#", 1<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := limitfile.Read(path); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		limits, err := limitfile.Parse(text)
		if err == nil && collector.CheckLimits(limits) != nil {
			t.Errorf("%v", limits)
		}
	})
}

// buffer is a log that one goroutine can read while another goroutine writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Run reloads the file when the file changes, and Reload reloads it immediately. An invalid or missing file changes no
// limit.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	synctest.Test(t, func(t *testing.T) { watch(t, path) })
}

func watch(t *testing.T, path string) {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	var log buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	write("limits: nonsense")
	if _, err := limitfile.Watch(c, path, logger); err == nil {
		t.Fatal("an invalid file is no error")
	}
	write(good)
	w, err := limitfile.Watch(c, path, logger)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(c.Limits(), goodLimits) {
		t.Errorf("limits %v", c.Limits())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s\n%s", what, log.String())
			}
		}
	}
	write("limits: [{resource: a, qps: 7}]")
	wait(
		"the change was not loaded",
		func() bool { return equal(c.Limits(), []collector.Limit{{Resource: "a", Count: 7}}) },
	)

	write("limits: [{resource: a, qps: -7}]")
	if err := w.Reload(); err == nil {
		t.Error("an invalid file is no error")
	}
	published := func(name string) (v float64, ok bool) {
		for _, m := range c.Metrics() {
			if m.Name == name {
				return m.Value(), true
			}
		}
		return 0, false
	}
	failures := func() float64 {
		n, _ := published("limits_reload_failures_total")
		return n
	}
	successful := func() bool {
		v, ok := published("limits_last_reload_successful")
		return ok && v == 1
	}
	wait("the invalid file is not counted", func() bool { return failures() == 1 && !successful() })
	if !equal(c.Limits(), []collector.Limit{{Resource: "a", Count: 7}}) ||
		!strings.Contains(log.String(), `qps is \"-7\"`) {
		t.Errorf("limits %v\n%s", c.Limits(), log.String())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.Reload(); err == nil {
		t.Error("a missing file is no error")
	}
	wait("a missing file is not counted", func() bool { return failures() == 2 })
	write("limits: []")
	wait("the empty list was not loaded", func() bool { return len(c.Limits()) == 0 && successful() })
	if at, ok := published("limits_last_reload_success_timestamp_seconds"); !ok || at <= 0 {
		t.Errorf("last load at %v", at)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, ok := published("limits_last_reload_success_timestamp_seconds"); ok {
		t.Error("the metrics exist after Run has returned")
	}
}
