package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// rounds lets a Follower poll until it finds no new lines, and returns the number of lines.
func (b begun) rounds() int64 {
	b.t.Helper()
	if b.timeline.Counter == nil {
		c, err := collector.New(collector.Options{Now: b.Clock.Now})
		if err != nil {
			b.t.Fatal(err)
		}
		b.serve(c, func() {})
	}
	time.Sleep(poll)
	for idle := false; !idle; {
		var err error
		if idle, err = b.round(); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.Report().Lines
}

// A file that was read under one name is not read again under another name, even if the other name matches the pattern
// or is a log itself.
func TestRegressionRenamedFilesWereReadAgain(t *testing.T) {
	link := func(t *testing.T, to, name string) {
		_ = os.Remove(name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		pattern string
		files   []string // existing files
		do      []func(t *testing.T, in func(name string) string)
		want    []int64 // lines after each step
	}{
		"a log appears whose rotations are followed": {
			"access.log*",
			[]string{"access.log.1"},
			[]func(*testing.T, func(string) string){
				func(t *testing.T, in func(string) string) { appendTo(t, create(t, in("access.log")), now()) },
				func(t *testing.T, in func(string) string) {
					rename(t, in("access.log"), in("access.log.1"))
					appendTo(t, create(t, in("access.log")), now())
					appendTo(t, create(t, in("access.log.1")), now())
				},
			},
			[]int64{1, 3},
		},
		"a link changes to a followed file": {
			"*.log",
			[]string{"x-1.log"},
			[]func(*testing.T, func(string) string){
				func(t *testing.T, in func(string) string) { link(t, in("x-1.log"), in("a.log")) },
				func(t *testing.T, in func(string) string) { appendTo(t, create(t, in("x-2.log")), now()) },
				func(t *testing.T, in func(string) string) { link(t, in("x-2.log"), in("a.log")) },
			},
			[]int64{0, 1, 1},
		},
		"a log is renamed, and its name stays free for long": {
			"*.log*",
			[]string{"access.log"},
			[]func(*testing.T, func(string) string){
				func(t *testing.T, in func(string) string) {
					appendTo(t, create(t, in("access.log")), now())
					rename(t, in("access.log"), in("access.log.1"))
				},
				func(*testing.T, func(string) string) { time.Sleep(2 * closeAfter) },
				func(t *testing.T, in func(string) string) { appendTo(t, create(t, in("access.log.1")), now()) },
				func(t *testing.T, in func(string) string) { appendTo(t, create(t, in("access.log")), now()) },
			},
			[]int64{1, 1, 2, 3},
		},
		"a log gets a name that rotation does not use": {
			"*.log",
			[]string{"access.log"},
			[]func(*testing.T, func(string) string){
				func(t *testing.T, in func(string) string) {
					appendTo(t, create(t, in("access.log")), now())
					rename(t, in("access.log"), in("before.log"))
					appendTo(t, create(t, in("access.log")), now())
				},
				func(*testing.T, func(string) string) { time.Sleep(2 * closeAfter) },
				func(*testing.T, func(string) string) { time.Sleep(2 * closeAfter) },
			},
			[]int64{2, 2, 2},
		},
		"a log is packed": {
			"*",
			[]string{"access.log"},
			[]func(*testing.T, func(string) string){
				func(t *testing.T, in func(string) string) {
					appendTo(t, create(t, in("old.gz")), "\x1f\x8b\x08\x00\n\x00\n")
				},
			},
			[]int64{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			synctest.Test(t, func(t *testing.T) {
				for _, file := range c.files {
					appendTo(t, create(t, in(file)), now())
				}
				f := begin(t, in(c.pattern), time.Time{})
				var got []int64
				for _, do := range c.do {
					do(t, in)
					f.rounds()
					got = append(got, f.rounds())
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("there are %d lines, want %d", got, c.want)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// All matching files are empty and no format is given: a file that appears with a line determines the format.
func TestRegressionTheFormatWasNotLookedForInFilesThatAppear(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		create(t, filepath.Join(dir, "a.log"))
		made := make(chan *Follower, 1)
		go func() {
			o := options(t, filepath.Join(dir, "*.log"))
			o.Format, o.Tolerance = nil, time.Second
			f, err := NewFollower(o, time.Time{})
			if err != nil {
				t.Error(err)
			}
			made <- f
		}()
		time.Sleep(time.Minute)
		b := create(t, filepath.Join(dir, "b.log"))
		appendTo(t, b,
			fmt.Sprintf("::1 - - [%s] \"GET / HTTP/1.1\" 200 1\n",
				time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700")))
		time.Sleep(time.Second)
		select {
		case f := <-made:
			if n := (begun{f, t}).follow(); n != 1 {
				t.Errorf("%d lines, want 1", n)
			}
		default:
			t.Error("the Follower waits for a line")
			// Ends the wait with an error: no format has such a line.
			appendTo(t, openLog(t, filepath.Join(dir, "a.log")), now())
			<-made
		}
	})
}
