package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// publish writes the files that a module proxy serves for a version of all modules. It creates them from the tags, like
// the go command.
func (r repository) publish(t *testing.T, version, proxy string) {
	t.Helper()
	for dir, path := range r.modules(t) {
		at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		write := func(name string, text []byte) {
			if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
		if err != nil {
			t.Fatal(err)
		}
		mod := must(os.ReadFile(r.path(dir, "go.mod")))(t)
		write("list", []byte(version+"\n"))
		write(version+".info", info)
		write(version+".mod", mod)
		file := must(os.Create(filepath.Join(at, version+".zip")))(t)
		tag := filepath.ToSlash(filepath.Join(dir, version))
		subdir := strings.TrimPrefix(dir, ".")
		if err := zip.CreateFromVCS(file, module.Version{Path: path, Version: version},
			r.dir, tag, subdir); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// modules returns the paths of the released modules, by directory.
func (r repository) modules(t *testing.T) map[string]string {
	t.Helper()
	paths := map[string]string{".": root}
	for _, dir := range must(r.nested())(t) {
		paths[dir] = root + "/" + dir
	}
	return paths
}

// must returns a function that returns v, and fails the test if err is not nil.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
