package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is replaced as a whole, or stays as it was, and nothing is left beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	expect := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%q, %v; want %q", b, err, want)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	}
	for v, put := range []func(string, any) error{Swap, Replace, Swap} {
		if err := put(path, v); err != nil {
			t.Fatal(err)
		}
	}
	expect("2\n")
	if Replace(path, func() {}) == nil {
		t.Error("what is no JSON is written")
	}
	expect("2\n")
	if Replace(filepath.Join(dir, "nowhere", "state.json"), 3) == nil {
		t.Error("a file is written where there is no directory")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if Replace(filepath.Join(dir, "taken"), 3) == nil {
		t.Error("a directory is replaced")
	}
	if err := os.Remove(filepath.Join(dir, "taken")); err != nil {
		t.Fatal(err)
	}
	expect("2\n")
}

// A file of state that is larger than any is not read into memory.
func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxSize+1)); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := Read(path, &v); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}
