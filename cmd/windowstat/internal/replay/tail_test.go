package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reading reads a tail in the background and collects the text.
type reading struct {
	mu   sync.Mutex
	text strings.Builder
	err  error
}

// tailOf returns a tail of a log, from its end, or from the lines written after since.
func tailOf(t *testing.T, path string, since time.Time) *tail {
	t.Helper()
	tail := (&Follower{Options: Options{Zone: time.UTC}}).newTail(path, false, since)
	if err := tail.open(time.Now()); err != nil {
		t.Fatal(err)
	}
	return tail
}

func follow(t *testing.T, path string, atEnd bool) *reading {
	t.Helper()
	r := &reading{}
	since := time.Unix(1, 0)
	if atEnd {
		since = time.Time{}
	}
	tail := tailOf(t, path, since)
	go func() {
		for {
			x, err := tail.look()
			if !x.upTo.IsZero() {
				select {
				case <-time.After(poll):
				case <-t.Context().Done():
				}
			}
			if t.Context().Err() != nil {
				if err := tail.close(); err != nil {
					t.Error(err)
				}
				return
			}
			r.mu.Lock()
			r.err = err
			r.text.Write(x.data)
			r.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return r
}

// want waits until the tail has polled, and compares its text.
func (r *reading) want(t *testing.T, want string) {
	t.Helper()
	time.Sleep(2 * poll)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.text.String(); got != want || r.err != nil {
		same := 0
		for same < min(len(got), len(want)) && got[same] == want[same] {
			same++
		}
		t.Fatalf("got %d bytes, %v, want %d; from byte %d on they are %.200q, want %.200q", len(got), r.err, len(want),
			same, got[same:], want[same:])
	}
}

func appendTo(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	f := openLog(t, path)
	t.Cleanup(func() { f.Close() })
	return f
}

// createWithoutAppend creates a log whose writer keeps its offset when the file is truncated.
func createWithoutAppend(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func openLog(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestTail(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, path string){
		"lines in pieces": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one\ntw")
			r := follow(t, path, false)
			r.want(t, "one\n")
			appendTo(t, f, "o")
			r.want(t, "one\n")
			appendTo(t, f, "\nthree\nfo")
			r.want(t, "one\ntwo\nthree\n")
			appendTo(t, f, "ur\n")
			r.want(t, "one\ntwo\nthree\nfour\n")
		},
		"from the end, in a line": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one\ntw")
			r := follow(t, path, true)
			appendTo(t, f, "o\nthree\n")
			r.want(t, "three\n")
		},
		"from the end of a line": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one\n")
			r := follow(t, path, true)
			appendTo(t, f, "two\n")
			r.want(t, "two\n")
		},
		"a file that is not there yet": func(t *testing.T, path string) {
			r := follow(t, path, true)
			r.want(t, "")
			appendTo(t, create(t, path), "one\n")
			r.want(t, "one\n")
		},
		"renamed": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one\n")
			r := follow(t, path, false)
			r.want(t, "one\n")
			rename(t, path, path+".1")
			r.want(t, "one\n")
			appendTo(t, f, "two\n") // the server has not reopened its log yet
			r.want(t, "one\ntwo\n")
			g := create(t, path)
			appendTo(t, g, "three\n")
			appendTo(t, f, "fo")
			r.want(t, "one\ntwo\nthree\n")
			appendTo(t, f, "ur\n") // one process of the server has not reopened it yet
			appendTo(t, g, "five\n")
			r.want(t, "one\ntwo\nthree\nfour\nfive\n")
			appendTo(t, f, "torn")
			time.Sleep(closeAfter + time.Second)
			r.want(t, "one\ntwo\nthree\nfour\nfive\ntorn")
			appendTo(t, f, "too late\n")
			r.want(t, "one\ntwo\nthree\nfour\nfive\ntorn")
		},
		"renamed twice": func(t *testing.T, path string) {
			f := create(t, path)
			r := follow(t, path, false)
			want := ""
			for i := range 5 {
				for _, line := range []string{fmt.Sprintf("%d a\n", i), fmt.Sprintf("%d b\n", i)} {
					appendTo(t, f, line)
					want += line
					r.want(t, want)
				}
				rename(t, path, fmt.Sprintf("%s.%d", path, i))
				f = create(t, path)
			}
		},
		"cut off": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one, and that is a long line\ntwo")
			r := follow(t, path, false)
			r.want(t, "one, and that is a long line\n")
			if err := f.Truncate(0); err != nil {
				t.Fatal(err)
			}
			appendTo(t, f, "three\n")
			r.want(t, "one, and that is a long line\ntwothree\n")
		},
		"deleted": func(t *testing.T, path string) {
			f := create(t, path)
			appendTo(t, f, "one\n")
			r := follow(t, path, false)
			r.want(t, "one\n")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			appendTo(t, f, "two\n")
			r.want(t, "one\ntwo\n")
			appendTo(t, create(t, path), "three\n")
			r.want(t, "one\ntwo\nthree\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) { test(t, path) })
		})
	}
}
