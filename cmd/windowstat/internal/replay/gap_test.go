package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The lines that may be missing after a restart are reported with their period, unless a file begins before the last
// second of the previous process.
func TestAGapThatCannotBeClosedIsTold(t *testing.T) {
	at := func(second int64) string { return fmt.Sprintf("%d.000 200 0.000\n", second) }
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		files map[string]string
		dirs  []string
		want  string
	}{
		"nothing was rotated": {map[string]string{"access.log": at(now-100) + at(now-10)}, nil, ""},
		"rotated into the directory of the log": {
			map[string]string{"access.log": at(now - 10), "access.log.1": at(now - 100)},
			nil, "",
		},
		"rotated into a directory": {map[string]string{
			"access.log":       at(now - 10),
			"old/access.log.1": at(now - 100),
		}, []string{"old"}, ""},
		"rotated into an unknown directory": {map[string]string{
			"access.log":       at(now - 10),
			"old/access.log.1": at(now - 100),
		}, nil, "lines of the 40s after that"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(dir, file)
				mkdir(t, filepath.Dir(path))
				write(t, path, []byte(text))
			}
			o, notes := options(t, filepath.Join(dir, "access.log")), ""
			o.Note = func(text string) { notes += text }
			for _, d := range c.dirs {
				o.RotatedDirs = append(o.RotatedDirs, filepath.Join(dir, d))
			}
			o.Format = begin(t, filepath.Join(dir, "none"), time.Time{}).Format
			f, err := NewFollower(o, time.Unix(now-50, 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if (notes == "") != (c.want == "") || !strings.Contains(notes, c.want) {
				t.Errorf("it says %q, want %q", notes, c.want)
			}
		})
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
