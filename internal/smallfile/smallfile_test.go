package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const maxSize = 1000

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yml")
	link := filepath.Join(dir, "link.yml")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, size := range []int{0, 1, maxSize} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			if b, err := Read(p, maxSize); len(b) != size || err != nil {
				t.Errorf("%d bytes, %v; want %d bytes", len(b), err, size)
			}
		}
	}
	if err := os.WriteFile(path, make([]byte, maxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	const tooLong = "is longer than 1000 bytes"
	for p, want := range map[string]string{path: tooLong, link: tooLong, dir: "not a regular file"} {
		if b, err := Read(p, maxSize); b != nil || err == nil || !strings.Contains(err.Error(), p) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes, %v; want an error with %q", len(b), err, want)
		}
	}
	if _, err := Read(path+".missing", maxSize); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}
