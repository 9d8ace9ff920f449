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

// copyTruncate rotates a file as logrotate's copytruncate does.
func copyTruncate(t *testing.T, path, to string, packed bool, between func()) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if packed {
		b = pack(t, b).Bytes()
	}
	if err := os.WriteFile(to, b, 0o644); err != nil {
		t.Fatal(err)
	}
	between()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

// Ten rotations, or four in a short run, of a log that grows by 500 lines a second, at random times between polls, with
// many lines in each new file. Each line is read once, in order.
func TestRotationLosesNothing(t *testing.T) {
	count := 10
	if testing.Short() {
		count = 4
	}
	plain := func(t *testing.T, i int, path string, f *os.File) *os.File { return cutOff(t, i, path, f, false) }
	packed := func(t *testing.T, i int, path string, f *os.File) *os.File { return cutOff(t, i, path, f, true) }
	for name, rotate := range map[string]func(t *testing.T, i int, path string, f *os.File) *os.File{
		"copytruncate":                           plain,
		"copytruncate, packed":                   packed,
		"copytruncate, without O_APPEND":         plain,
		"copytruncate, packed, without O_APPEND": packed,
		"create":                                 putAside,
		"mixed": func(t *testing.T, i int, path string, f *os.File) *os.File {
			if i%2 == 0 {
				return putAside(t, i, path, f)
			}
			return cutOff(t, i, path, f, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				f := create(t, path)
				if strings.HasSuffix(name, "without O_APPEND") {
					f = createWithoutAppend(t, path)
				}
				r := follow(t, path, false)
				var want strings.Builder
				n := 0
				serve := func(lines int) {
					for range lines {
						n++
						line := fmt.Sprintf("%s line %d of many\n", time.Now().Format(time.RFC3339Nano), n)
						appendTo(t, f, line)
						want.WriteString(line)
						time.Sleep(2 * time.Millisecond)
					}
				}
				for i := range count {
					serve(500 + 37*i)
					f = rotate(t, i, path, f)
					if i%3 == 0 {
						serve(20) // before the same poll
					}
				}
				serve(300)
				r.want(t, want.String())
			})
		})
	}
}

func cutOff(t *testing.T, i int, path string, f *os.File, packed bool) *os.File {
	t.Helper()
	suffix := ""
	if packed {
		suffix = ".gz"
	}
	copyTruncate(t, path, fmt.Sprintf("%s.%d%s", path, i, suffix), packed, func() {})
	return f
}

func putAside(t *testing.T, i int, path string, _ *os.File) *os.File {
	t.Helper()
	rename(t, path, fmt.Sprintf("%s.%d", path, i))
	return create(t, path)
}

// A truncation is detected even if the log exceeds its old size again before the next poll.
func TestTruncationThatIsGrownOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	synctest.Test(t, func(t *testing.T) {
		f := create(t, path)
		r := follow(t, path, false)
		appendTo(t, f, "one\n")
		r.want(t, "one\n")
		appendTo(t, f, "two\n")
		copyTruncate(t, path, path+".1", false, func() {})
		appendTo(t, f, "three is longer than all of that\n")
		r.want(t, "one\ntwo\nthree is longer than all of that\n")
	})
}

// Bytes that were seen, and are neither in the file nor in a copy, are counted as cut.
func TestWhatIsCutOffIsCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	line := bytes.Repeat([]byte("x"), 1023)
	line = append(line, '\n')
	if err := os.WriteFile(path, bytes.Repeat(line, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, copied := range []int64{0, 600} {
		if err := os.WriteFile(path, bytes.Repeat(line, 1000), 0o644); err != nil {
			t.Fatal(err)
		}
		tail, err := tailOf(t, path, time.Unix(1, 0)), error(nil)
		if err != nil {
			t.Fatal(err)
		}
		x, err := tail.look()
		if err != nil {
			t.Fatal(err)
		}
		read := int64(len(x.data))
		if copied > 0 {
			if err := os.WriteFile(path+".1", bytes.Repeat(line, int(copied)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		cut := int64(0)
		for idle := false; !idle; {
			x, err := tail.look()
			if err != nil {
				t.Fatal(err)
			}
			idle = !x.upTo.IsZero()
			read += int64(len(x.data))
			cut += x.cut
		}
		if read+cut != 1000<<10 || copied > 0 && read != copied<<10 || copied == 0 && read == 0 {
			t.Errorf("%d of 1000 copied: %d read, %d cut", copied, read>>10, cut>>10)
		}
		if err := tail.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRotations(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{
		"access.log", "access.log.2.gz", "access.log.1", "access.log.3", "access.log.3.gz",
		"access-20260102.log", "access.log-20260103.zst",
		"access.log.pos", "access.log.1.new", "access_json.log.1", "error.log.1", "access.log.old",
	} {
		path := write(t, filepath.Join(dir, name), nil)
		at := time.Unix(1_000_000+int64(i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range rotations(filepath.Join(dir, "access.log"), nil, time.Unix(1_000_002, 0)) {
		got = append(got, filepath.Base(path))
	}
	want := "[access.log.old access.log-20260103.zst access-20260102.log access.log.3 access.log.1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Files that were rotated while no process followed are read first, whether packed or growing.
func TestRotatedWhileNobodyFollowed(t *testing.T) {
	for name, packed := range map[string]bool{"plain": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				f := create(t, path)
				appendTo(t, f, "one\n")
				cutOff(t, 2, path, f, packed)
				appendTo(t, f, "two\n")
				rename(t, path, path+".1")
				appendTo(t, create(t, path), "three\n")
				r := follow(t, path, false)
				r.want(t, "one\ntwo\nthree\n")
				appendTo(t, f, "four\n")
				r.want(t, "one\ntwo\nthree\nfour\n")
			})
		})
	}
}

// Several rotations between two polls, as after a suspended process: each file is read once, in order. Files from
// before the start do not count, copies of read files are not read again, and packed files are read like others.
func TestSeveralRotationsBetweenTwoLooks(t *testing.T) {
	for name, packed := range map[string]bool{"plain": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				written := func(path string, ago time.Duration) {
					if err := os.Chtimes(path, time.Time{}, time.Now().Add(-ago)); err != nil {
						t.Fatal(err)
					}
				}
				appendTo(t, create(t, path+".9"), "from before\n")
				written(path+".9", time.Second)
				f := create(t, path)
				r := follow(t, path, true)
				appendTo(t, f, "one\n")
				r.want(t, "one\n")
				appendTo(t, f, "two\n")
				copyTruncate(t, path, path+"-20260102", false, func() { rename(t, path, path+".5"); create(t, path) })
				written(path+"-20260102", 0)
				appendTo(t, f, "three\n")
				old := time.Now().Add(-time.Minute).Format("02/Jan/2006:15:04:05 -0700")
				appendTo(t, create(t, path+".old"), fmt.Sprintf("::1 - - [%s] \"GET / HTTP/1.1\" 200 1\n", old))
				written(path+".old", 0)
				appendTo(t, create(t, path), "four\n")
				third := path + ".3"
				if packed {
					third += ".gz"
					cutOff(t, 3, path, nil, true)
					remove(t, path)
				} else {
					rename(t, path, third)
				}
				written(third, 20*time.Millisecond)
				f = create(t, path)
				appendTo(t, f, "five\n")
				rename(t, path, path+".2")
				written(path+".2", 10*time.Millisecond)
				appendTo(t, create(t, path), "six\n")
				r.want(t, "one\ntwo\nthree\nfour\nfive\nsix\n")
				appendTo(t, f, "seven\n")
				r.want(t, "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
			})
		})
	}
}

// Also several copies of a truncated file: copies of unseen content are read completely.
func TestSeveralTruncationsBetweenTwoLooks(t *testing.T) {
	for name, c := range map[string]struct {
		packed bool
		create func(*testing.T, string) *os.File
	}{
		"plain":                    {false, create},
		"packed":                   {true, create},
		"plain, without O_APPEND":  {false, createWithoutAppend},
		"packed, without O_APPEND": {true, createWithoutAppend},
	} {
		t.Run(name, func(t *testing.T) {
			path, packed := filepath.Join(t.TempDir(), "access.log"), c.packed
			synctest.Test(t, func(t *testing.T) {
				f := c.create(t, path)
				cutOff(t, 9, path, f, packed)
				r := follow(t, path, true)
				appendTo(t, f, "one\n")
				r.want(t, "one\n")
				for i, line := range []string{"two\n", "three is longer than these\n", "four\n"} {
					appendTo(t, f, line)
					cutOff(t, i, path, f, packed)
					copied := fmt.Sprintf("%s.%d%s", path, i, map[bool]string{true: ".gz"}[packed])
					if err := os.Chtimes(copied, time.Time{},
						time.Now().Add(time.Duration(i-3)*time.Millisecond)); err != nil {
						t.Fatal(err)
					}
				}
				appendTo(t, f, "five\n")
				r.want(t, "one\ntwo\nthree is longer than these\nfour\nfive\n")
			})
		})
	}
}

func TestRotationsWithDashes(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{
		"app.log", "app-2026-01-02.log", "app-2026-01-02.1.log", "app-2026-01-03.log.gz",
		"app.1.log", "app-1.log", "app-80.log", "app-80.1.log",
	} {
		path := write(t, filepath.Join(dir, name), nil)
		at := time.Unix(1_000_000+int64(i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range rotations(filepath.Join(dir, "app.log"), nil, time.Unix(1_000_000, 0)) {
		got = append(got, filepath.Base(path))
	}
	want := "[app-1.log app.1.log app-2026-01-03.log.gz app-2026-01-02.1.log app-2026-01-02.log]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Another log whose name looks like a rotated file is rotated at the same time. Its rotated files show that it is a
// separate log.
func TestALogOfItsOwnIsNotWhatRotationMade(t *testing.T) {
	for name, c := range map[string]struct{ log, other, aside string }{
		"behind the name":   {"access.log", "access-2.log", "access-2.log.1"},
		"before its end":    {"access.log", "access_2.log", "access_2-20260102.log"},
		"packed, of a port": {"app.log", "app-8080.log", "app-8080.log-20260102.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, c.log), filepath.Join(dir, c.other)
			synctest.Test(t, func(t *testing.T) {
				f, g := create(t, path), create(t, other)
				r := follow(t, path, true)
				appendTo(t, f, "one\n")
				appendTo(t, g, "of another log\n")
				r.want(t, "one\n")
				rename(t, other, filepath.Join(dir, c.aside))
				g = create(t, other)
				appendTo(t, g, "also of another log\n")
				rename(t, path, path+".1")
				appendTo(t, create(t, path), "two\n")
				r.want(t, "one\ntwo\n")
				appendTo(t, g, "as before\n")
				r.want(t, "one\ntwo\n")
			})
		})
	}
}

// A line has the start time of its call, as in Apache's logs. A new file may therefore have lines that are older than
// the file.
func TestAFileThatNobodySawHasASlowCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	synctest.Test(t, func(t *testing.T) {
		line := func(path string, ago time.Duration) string {
			return fmt.Sprintf("::1 - - [%s] \"GET %s HTTP/1.1\" 200 1\n",
				time.Now().Add(-ago).Format("02/Jan/2006:15:04:05 -0700"), path)
		}
		first := line("/a", 0)
		f := create(t, path)
		r := follow(t, path, true)
		appendTo(t, f, first)
		r.want(t, first)
		rename(t, path, path+".2")
		second := line("/b", 0) + line("/slow", time.Minute) + line("/c", 0)
		appendTo(t, create(t, path), second)
		rename(t, path, path+".1")
		create(t, path)
		r.want(t, first+second)
	})
}

// A packed file that was read is found again by the next rotation, a short time later.
func TestAPackedFileIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	synctest.Test(t, func(t *testing.T) {
		f := create(t, path)
		r := follow(t, path, true)
		appendTo(t, f, "one\n")
		r.want(t, "one\n")
		rename(t, path, path+".2")
		f = create(t, path)
		appendTo(t, f, "two\n")
		cutOff(t, 1, path, f, true)
		remove(t, path)
		create(t, path)
		r.want(t, "one\ntwo\n")
		rename(t, path, path+".0")
		appendTo(t, create(t, path), "three\n")
		r.want(t, "one\ntwo\nthree\n")
	})
}

// A copy is recognized by the content of its original, even if no line of that was read yet, and while the copy is
// being written.
func TestCopiesOfWhatIsNotReadYet(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, path string, f *os.File, r *reading){
		"a file that was empty is moved by a copy": func(t *testing.T, path string, f *os.File, r *reading) {
			appendTo(t, f, "one\n")
			copyTruncate(t, path, path+".1", false, func() { remove(t, path); create(t, path) })
			r.want(t, "one\n")
		},
		"and is packed": func(t *testing.T, path string, f *os.File, r *reading) {
			appendTo(t, f, "one\n")
			copyTruncate(t, path, path+".1.gz", true, func() { remove(t, path); create(t, path) })
			r.want(t, "one\n")
		},
		"a file that was truncated before is being copied": func(t *testing.T, path string, f *os.File, r *reading) {
			appendTo(t, f, "one\n")
			r.want(t, "one\n")
			cutOff(t, 2, path, f, false)
			appendTo(t, f, "two\n")
			copyTruncate(t, path, path+".1", false, func() { r.want(t, "one\ntwo\n") })
			appendTo(t, f, "three\n")
			r.want(t, "one\ntwo\nthree\n")
		},
		"the copy is empty yet": func(t *testing.T, path string, f *os.File, r *reading) {
			appendTo(t, f, "one\n")
			r.want(t, "one\n")
			rename(t, path, path+".tmp")
			appendTo(t, create(t, path), "two\n")
			copied := create(t, path+".1")
			r.want(t, "one\ntwo\n")
			appendTo(t, copied, "one\n")
			r.want(t, "one\ntwo\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				f := create(t, path)
				r := follow(t, path, true)
				r.want(t, "")
				test(t, path, f, r)
			})
		})
	}
}

// Two logs have equal lines, for example from a health check of both. The rotated file of one log is not a copy of the
// other log.
func TestFilesOfLogsThatBeginAlike(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	other := filepath.Join(filepath.Dir(path), "other.log")
	synctest.Test(t, func(t *testing.T) {
		f, g := create(t, path), create(t, other)
		one := tailOf(t, path, time.Time{})
		two := one.newTail(other, false, time.Time{})
		if err := two.open(time.Now()); err != nil {
			t.Fatal(err)
		}
		look := func(tail *tail, want string) {
			t.Helper()
			got := ""
			for {
				x, err := tail.look()
				if err != nil {
					t.Fatal(err)
				}
				if got += string(x.data); !x.upTo.IsZero() {
					break
				}
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", tail.name, got, want)
			}
		}
		appendTo(t, f, "one\n")
		appendTo(t, g, "one\n")
		look(one, "one\n")
		look(two, "one\n")
		for _, path := range []string{path, other} {
			rename(t, path, path+".2")
			appendTo(t, create(t, path), "two\n")
			rename(t, path, path+".1")
			create(t, path)
		}
		look(one, "two\n")
		look(two, "two\n")
		for _, tail := range []*tail{one, two} {
			if err := tail.close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
