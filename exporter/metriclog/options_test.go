package metriclog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// The error of New names all invalid options together, or the directory that cannot be used.
func TestOptionsNameAllInvalidFields(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	for _, tc := range []struct {
		o    metriclog.Options
		want []string
	}{
		{metriclog.Options{}, []string{`App: ""`, "Dir: is empty"}},
		{
			metriclog.Options{App: "../x", Dir: t.TempDir(), MaxFiles: -1, MaxFileSize: -1},
			[]string{`App: "../x"`, "MaxFiles: -1", "MaxFileSize: -1"},
		},
		{metriclog.Options{App: "a\nb", Dir: t.TempDir()}, []string{`App: "a\nb"`}},
		{metriclog.Options{App: "\xff", Dir: t.TempDir()}, []string{`App: "\xff"`}},
		{metriclog.Options{App: strings.Repeat("a", 101), Dir: t.TempDir()}, []string{`1 to 100 bytes`}},
		{
			metriclog.Options{MaxFiles: -1, MaxBytes: -2, MaxAge: 1500 * ms, Sync: -time.Second, MaxFileSize: -3},
			[]string{
				`App: ""`, "Dir: is empty", "MaxFiles: -1", "MaxBytes: -2",
				"MaxAge: 1.5s; whole seconds", "Sync: -1s; whole seconds", "MaxFileSize: -3",
			},
		},
		{metriclog.Options{App: "a", Dir: file}, []string{"file: not a directory"}},
		{metriclog.Options{App: "a", Dir: filepath.Join(file, "sub")}, []string{"not a directory"}},
		{metriclog.Options{App: "a", Dir: "/proc/self"}, []string{"/proc/self"}}, // read-only for all users
	} {
		_, err := metriclog.New(c, tc.o)
		for _, part := range tc.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: error %v does not contain %q", tc.o, err, part)
			}
		}
	}
	if _, err := metriclog.New(nil, metriclog.Options{App: "a", Dir: t.TempDir()}); err == nil {
		t.Error("New without a Collector returned no error")
	}
}
