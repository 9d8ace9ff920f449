package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"time"
)

// file is a file of an archive, with its name there.
type file struct {
	name, path string
	mode       fs.FileMode
}

// tarball packs files into a directory of an archive. The result does not depend on the time and the machine.
func tarball(dir string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, f := range files {
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{
			Name: dir + "/" + f.name, Mode: int64(f.mode), Size: int64(len(text)),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), compressed.Close())
	return b.Bytes(), err
}

// zipped is like tarball, for systems without tar.
func zipped(dir string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		header := &zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
