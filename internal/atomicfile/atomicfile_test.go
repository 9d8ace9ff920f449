package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Replace and Swap replace the whole file or leave it unchanged, and leave no temporary file.
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
		t.Error("wrote a value that JSON cannot hold")
	}
	expect("2\n")
	if Replace(filepath.Join(dir, "nowhere", "state.json"), 3) == nil {
		t.Error("wrote a file without a directory")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if Replace(filepath.Join(dir, "taken"), 3) == nil {
		t.Error("replaced a directory")
	}
	if err := os.Remove(filepath.Join(dir, "taken")); err != nil {
		t.Fatal(err)
	}
	expect("2\n")
}

// Load returns the zero value without a file, and renames a file that it cannot use.
func TestLoad(t *testing.T) {
	positive := func(n int) error {
		if n < 0 {
			return errors.New("negative")
		}
		return nil
	}
	for content, want := range map[string]int{"": 0, "7": 7, "-7": 0, "{": 0, `"x"`: 0} {
		path := filepath.Join(t.TempDir(), "state.json")
		if content != "" {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n, err := Load(path, positive)
		if n != want || (err == nil) != (content == "" || want > 0) {
			t.Errorf("%q: %d, %v", content, n, err)
		}
		if err == nil {
			continue
		}
		if b, failed := os.ReadFile(path + ".unreadable"); string(b) != content ||
			!strings.Contains(err.Error(), path+".unreadable") {
			t.Errorf("%q: the renamed file has %q, %v; the error is %v", content, b, failed, err)
		}
		if n, err := Load(path, positive); n != 0 || err != nil {
			t.Errorf("%q: the next Load returns %d, %v", content, n, err)
		}
	}
}

// Read does not load an oversized file into memory.
func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxSize+1)); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := Read(path, &v); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("%v", err)
	}
}
