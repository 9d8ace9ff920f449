package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A writer without O_APPEND leaves a hole at the start of a truncated file. All lines after the hole are read, for any
// size of the hole, and whether or not the file system stores it.
func TestHoleAtTheStart(t *testing.T) {
	for _, size := range []int64{1, fingerprintBytes, blockSize - 1, blockSize, 3 << 20} {
		for _, stored := range []bool{false, true} {
			for _, atEnd := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes, stored %v, at the end %v", size, stored, atEnd), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "access.log")
					synctest.Test(t, func(t *testing.T) {
						f := createWithoutAppend(t, path)
						hole := func() {
							if _, err := f.WriteAt(make([]byte, size), 0); stored && err != nil {
								t.Fatal(err)
							}
						}
						if stored {
							hole()
						}
						if _, err := f.Seek(size, 0); err != nil {
							t.Fatal(err)
						}
						appendTo(t, f, "one\n")
						r, want := follow(t, path, atEnd), ""
						if !atEnd {
							want = "one\n"
						}
						r.want(t, want)
						appendTo(t, f, "two\n")
						r.want(t, want+"two\n")
						// The next hole is larger. The copy has a line that was not read before.
						appendTo(t, f, "three\n")
						copyTruncate(t, path, path+".1", false, func() {})
						appendTo(t, f, "four\n")
						if stored {
							hole()
						}
						r.want(t, want+"two\nthree\nfour\n")
					})
				})
			}
		}
	}
}

// The lines after the hole at the start of an archive are read.
func TestHoleInAnArchive(t *testing.T) {
	for _, packed := range []bool{false, true} {
		content := append(make([]byte, 3<<20), "one\ntwo\n"...)
		if packed {
			content = pack(t, content).Bytes()
		}
		c, err := openArchive(write(t, filepath.Join(t.TempDir(), "access.log.1"), content))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for {
			x, err := c.lines.next(nil)
			got.Write(x.data)
			if err != nil {
				break
			}
		}
		if got.String() != "one\ntwo\n" || c.archive.start.hole != 3<<20 {
			t.Errorf("packed %v: got %q after %d NULs", packed, got.String(), c.archive.start.hole)
		}
	}
}

// FuzzTruncations writes, truncates and polls in random order, with both kinds of writers. Every line is read once,
// unless no copy has it.
func FuzzTruncations(f *testing.F) {
	f.Add([]byte{1, 0, 9, 2, 1, 0, 2, 1, 1, 0}, false)
	f.Add([]byte{200, 0, 2, 200, 2, 0, 1, 2, 0, 2, 0}, true)
	f.Fuzz(func(t *testing.T, steps []byte, appends bool) {
		path := filepath.Join(t.TempDir(), "access.log")
		open := createWithoutAppend
		if appends {
			open = create
		}
		w := open(t, path)
		tail := tailOf(t, path, time.Unix(1, 0))
		var got, want bytes.Buffer
		poll := func() {
			for {
				x, err := tail.look()
				if err != nil {
					t.Fatal(err)
				}
				got.Write(x.data)
				if !x.upTo.IsZero() {
					return
				}
			}
		}
		line, copies := 0, 0
		for _, step := range steps[:min(len(steps), 60)] {
			switch {
			case step%4 == 0:
				poll()
			case step%4 == 1:
				if copies == 9 || tail.files[len(tail.files)-1].offset == 0 {
					continue // truncating an empty file leaves no evidence
				}
				// Copies are ordered by their modification times, as in practice.
				copies++
				to := fmt.Sprintf("%s.%d", path, copies)
				copyTruncate(t, path, to, step%8 > 4, func() {})
				at := time.Now().Add(time.Duration(copies-20) * time.Millisecond)
				if err := os.Chtimes(to, at, at); err != nil {
					t.Fatal(err)
				}
				poll() // the times of lines order two truncations between polls; these lines have no times
			default:
				for range step {
					line++
					text := fmt.Sprintf("line %d of many, which are all different\n", line)
					appendTo(t, w, text)
					want.WriteString(text)
				}
			}
		}
		poll()
		if got.String() != want.String() {
			t.Errorf("got %d bytes of %d", got.Len(), want.Len())
		}
		if err := tail.close(); err != nil {
			t.Error(err)
		}
	})
}
