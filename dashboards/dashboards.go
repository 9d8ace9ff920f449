// Package dashboards embeds the Grafana dashboards, the rules for Prometheus and VictoriaMetrics, and their
// provisioning. The program in gen makes the dashboards.
package dashboards

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed *.json victoriametrics *.libsonnet runbook.md README.md kustomization.yaml rules provisioning compose
var files embed.FS

// FS returns all files of the package.
func FS() fs.FS { return files }

// ErrChanged is the error of [Write] for each existing file that it would overwrite.
var ErrChanged = errors.New("has other contents")

// Write writes all files to a directory, and creates it if needed. If an existing file has other contents or is a
// dangling link, and overwrite is false, Write returns [ErrChanged] and writes nothing.
func Write(dir string, overwrite bool) error {
	var changed []error
	err := each(func(name string, text []byte) error {
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(path); err != nil {
				return nil
			}
		} else if err != nil {
			return err
		}
		if string(old) != string(text) {
			changed = append(changed, fmt.Errorf("dashboards: %s %w", path, ErrChanged))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(changed) > 0 && !overwrite {
		return errors.Join(changed...)
	}
	return each(func(name string, text []byte) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o644)
	})
}

// each calls f for every file. The path has the separators of the operating system.
func each(f func(name string, text []byte) error) error {
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return f(filepath.FromSlash(path), text)
	})
}
