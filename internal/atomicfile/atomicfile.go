// Package atomicfile reads and atomically replaces small state files in JSON.
//
// State files hold data for the next process: positions of pushes and scrapers, runs, and earned names. A process reads
// its file at startup, and replaces it when the state changes. A reader sees the old content or the new content. A
// service must start even if a file is unreadable; [Load] renames such a file and reports it.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windowstat/windowstat/internal/smallfile"
)

// maxSize exceeds the size of any state file.
const maxSize = 64 << 20

// Read decodes the JSON in a file into v. If there is no file, v is unchanged and the error is nil. The error names the
// file.
func Read(path string, v any) error {
	b, err := smallfile.Read(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err = json.Unmarshal(b, v); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// Load decodes the state file at path into a T and checks it. It returns the zero T without a file. A file that cannot
// be read, decoded or checked is renamed to path.unreadable, so that an operator can inspect it; Load then returns the
// zero T and an error with the cause and the new name. A nil check accepts every value.
func Load[T any](path string, check func(T) error) (v T, err error) {
	if err = Read(path, &v); err == nil && check != nil {
		err = check(v)
	}
	if err == nil {
		return v, nil
	}
	quarantine := path + ".unreadable"
	if failed := os.Rename(path, quarantine); failed != nil {
		err = errors.Join(err, failed)
	} else {
		err = fmt.Errorf("%w; renamed the file to %s", err, quarantine)
	}
	return *new(T), err
}

// Replace writes v as JSON to a temporary file, syncs it to disk, and renames it to path. After a power cut the file is
// the old one or the new one. Two goroutines must not replace one file concurrently.
func Replace(path string, v any) error { return replace(path, v, true) }

// Write is [Replace] for a file with any content.
func Write(path string, content []byte) error { return write(path, content, true) }

// Swap is [Replace] without the sync, for a file that is written every second. The file survives a crash of the
// process, but after a power cut it may be an old one or incomplete.
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
		_ = SyncDir(filepath.Dir(path)) // not supported on all systems
	}
	return nil
}

// SyncDir syncs the entries of a directory to disk. Without it, a power cut may undo the creation or the rename of a
// file.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
