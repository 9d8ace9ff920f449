// Package atomicfile replaces files as a whole, small ones of JSON above all: state that a process keeps for its successor.
//
// Positions of pushes and scrapers, runs, and earned names are such state. All have the same life: read at the start, and set aside if
// that fails, since a service must not fail to start over them; replaced when they change. A reader sees the old content or the new one.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSize is more than any file of state has.
const maxSize = 64 << 20

// Read reads the JSON in a file into v, which stays as it is if there is no file. The error names the file.
func Read(path string, v any) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(b) > maxSize {
		err = fmt.Errorf("more than %d bytes", maxSize)
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// SetAside renames a file that cannot be used, because of an error, so that it can be looked at and does not stand in the way of what begins
// anew. It returns the new name, and the error with that of renaming.
func SetAside(path string, cause error) (aside string, err error) {
	aside = path + ".unreadable"
	return aside, errors.Join(cause, os.Rename(path, aside))
}

// Replace writes v as JSON to a new file beside path, and renames it when it is on the disk: after a power cut the file is the
// old one or the new one. Two at a time must not replace one file.
func Replace(path string, v any) error { return replace(path, v, true) }

// Write is [Replace] for a file of any content.
func Write(path string, content []byte) error { return write(path, content, true) }

// Swap is [Replace] without waiting for the disk, for a file that is written every second: the end of the process does not harm
// it, and after a power cut it may be an old one or a torn one.
func Swap(path string, v any) error { return replace(path, v, false) }

func replace(path string, v any, sync bool) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return write(path, append(b, '\n'), sync)
}

func write(path string, content []byte, sync bool) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if sync {
		_ = SyncDir(filepath.Dir(path)) // not all systems can
	}
	return nil
}

// SyncDir syncs a directory's entries to the disk: without it a power cut may take a new file, or its new name.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
