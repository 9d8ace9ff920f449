package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs a Job on a log and returns its output.
func run(t *testing.T, j *Job, log string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	j.Replay.Files, j.Replay.Zone, j.Replay.Tolerance = []string{path}, time.UTC, DefaultTolerance
	j.FailAbove, j.LateAbove = 0.1, DefaultLate
	j.Naming.MaxResources, j.Naming.MaxValues, j.Naming.Depth = 100, 100, 8
	if err := j.Check(); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := j.Run(t.Context(), &out, &out)
	return out.String(), err
}

// Lines outside of --from and --to are counted separately. They are not errors, regardless of their number.
func TestRangeOfLines(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "192.0.2.1 - - [22/Nov/2026:10:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1 0.007\n", i/60, i%60)
	}
	for _, c := range []struct {
		from, to string
		outside  int
		wrong    string
	}{
		{"", "", 0, ""},
		{"2026-11-22 10:00:10", "", 10, ""},
		{"", "2026-11-22 10:00:10", 89, ""},
		{"2026-11-22 10:00:30", "+10s", 89, ""},
		{"2026-11-22 10:00:30", "2026-11-22 10:00:30", 99, ""},
		{"2026-11-23", "", 100, ""},
		{"2026-11-22 10:00:30", "2026-11-22 10:00:29", 0, "is after --to"},
		{"soon", "later", 0, "--to"},
	} {
		out, err := run(t, &Job{From: c.from, To: c.to}, log.String())
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q to %q: %v, want %q", c.from, c.to, err, c.wrong)
			}
			continue
		}
		want := fmt.Sprintf("%12d lines outside of --from and --to\n", c.outside)
		counted := fmt.Sprintf("%12d calls with status 200\n", 100-c.outside)
		if err != nil || (c.outside > 0) != strings.Contains(out, want) ||
			(c.outside < 100) != strings.Contains(out, counted) {
			t.Errorf("%q to %q: %v\n%s", c.from, c.to, err, out)
		}
	}
}

// Users can set keys of JSON, also nested ones. The error for an unknown field lists all fields.
func TestKeysOfLines(t *testing.T) {
	const line = `{"when":1795341601.5,"http":{"response":{"code":201},"took":7},"http.verb":"GET","path":"/a"}` + "\n"
	keys := map[string]string{
		"time": "when", "status": "http.response.code", "duration": "http.took",
		"method": "http.verb", "target": "path",
	}
	out, err := run(t, &Job{Keys: keys}, line+line)
	if err != nil || !strings.Contains(out, "2 calls with status 201") {
		t.Errorf("%v\n%s", err, out)
	}
	_, err = run(t, &Job{Keys: map[string]string{"size": "bytes"}}, line)
	if err == nil || !strings.Contains(err.Error(), `no field "size"`) {
		t.Error(err)
	}
}
