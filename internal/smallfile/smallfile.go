// Package smallfile reads files that an operator edits and a process watches: limits, passwords, certificates. A path
// may be wrong. Reading a pipe would wait for a writer, and reading a device may never end, so [Read] reads only
// regular files up to a size.
//
//	FIFO, socket, device, directory     error before the file is opened
//	replaced by a FIFO before the open  the open does not wait, and the type is checked again: error
//	longer than the maximum             error without reading
//	grows while it is read              error after the maximum
//
// A file system that does not respond, such as NFS without its server, still blocks [Read]. A server must therefore not
// call it for each request.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns the content of a regular file of at most maxSize bytes. It follows symbolic links. Its errors name the
// path; [fs.ErrNotExist] is in the chain of the error for a file that does not exist.
func Read(path string, maxSize int64) (content []byte, err error) {
	info, err := os.Stat(path)
	if err == nil {
		err = check(path, info, maxSize)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The path may refer to another file now.
	if info, err = f.Stat(); err == nil {
		err = check(path, info, maxSize)
	}
	if err != nil {
		return nil, err
	}
	content, err = io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && int64(len(content)) > maxSize {
		err = tooLong(path, maxSize)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// check returns an error if a file is not regular or too long.
func check(path string, info fs.FileInfo, maxSize int64) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxSize:
		return tooLong(path, maxSize)
	}
	return nil
}

func tooLong(path string, maxSize int64) error {
	return fmt.Errorf("%s is longer than %d bytes", path, maxSize)
}
