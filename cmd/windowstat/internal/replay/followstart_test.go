package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
)

// begun returns a new Follower of a log. It has not polled the log yet.
type begun struct {
	*Follower
	t *testing.T
}

func begin(t *testing.T, path string, after time.Time) begun {
	t.Helper()
	format, err := accesslog.Nginx("$msec $status $request_time")
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, path)
	o.Format, o.Tolerance = format, time.Second
	f, err := NewFollower(o, after)
	if err != nil {
		t.Fatal(err)
	}
	return begun{f, t}
}

// follow runs the Follower for a while, and returns the number of lines that it read.
func (b begun) follow() int64 {
	b.t.Helper()
	c, err := collector.New(collector.Options{Now: b.Clock.Now})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	if err := b.Run(ctx, c, func() {}); err != nil {
		b.t.Fatal(err)
	}
	return b.Report().Lines
}

// now returns a line of the current second.
func now() string { return fmt.Sprintf("%d.000 200 0.001\n", time.Now().Unix()) }

// Lines that exist when a Follower is created are old. All later lines are new, however late Run polls for the first
// time.
func TestNothingIsLostBeforeTheFirstLook(t *testing.T) {
	for name, c := range map[string]struct {
		before, between func(t *testing.T, path string)
		want            int64
	}{
		"a file that appears": {
			between: func(t *testing.T, path string) { appendTo(t, create(t, path), now()+now()) },
			want:    2,
		},
		"a directory that appears": {
			before: func(t *testing.T, path string) { remove(t, filepath.Dir(path)) },
			between: func(t *testing.T, path string) {
				if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				appendTo(t, create(t, path), now())
			},
			want: 1,
		},
		"a file that grows": {
			before:  func(t *testing.T, path string) { appendTo(t, create(t, path), now()) },
			between: func(t *testing.T, path string) { appendTo(t, create(t, path), now()+now()) },
			want:    2,
		},
		"a file that is rotated": {
			before: func(t *testing.T, path string) { appendTo(t, create(t, path), now()) },
			between: func(t *testing.T, path string) {
				appendTo(t, create(t, path), now())
				rename(t, path, path+".1")
				appendTo(t, create(t, path), now()+now())
				appendTo(t, create(t, path+".1"), now())
			},
			want: 4,
		},
		"a file that is replaced": {
			before: func(t *testing.T, path string) { appendTo(t, create(t, path), now()) },
			between: func(t *testing.T, path string) {
				remove(t, path)
				appendTo(t, create(t, path), now()+now()) // perhaps with the inode of the previous file
			},
			want: 2,
		},
		"a file that is cut off": {
			before: func(t *testing.T, path string) { appendTo(t, create(t, path), now()+now()) },
			between: func(t *testing.T, path string) {
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
				appendTo(t, create(t, path), now())
			},
			want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "logs", "access.log")
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				if c.before != nil {
					c.before(t, path)
				}
				f := begin(t, path, time.Time{})
				time.Sleep(time.Minute) // a slow start
				c.between(t, path)
				if got := f.follow(); got != c.want {
					t.Errorf("%d lines are new, want %d", got, c.want)
				}
			})
		})
	}
}

// A process that continues where another one ended reads the files that were rotated before its start.
func TestGoingOnThroughARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	synctest.Test(t, func(t *testing.T) {
		after := time.Now()
		time.Sleep(2 * time.Second)
		appendTo(t, create(t, path), now())
		f := begin(t, path, after)
		rename(t, path, path+".1")
		appendTo(t, create(t, path), now())
		if got := f.follow(); got != 2 {
			t.Errorf("%d lines are new, want 2", got)
		}
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A log is empty right after its rotation. Its format comes from the rotated file or from its first line.
func TestEmptyLog(t *testing.T) {
	line := func(path string) string {
		return fmt.Sprintf("::1 - - [%s] \"GET %s HTTP/1.1\" 200 1 \"-\" \"agent\" 0.250\n",
			time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), path)
	}
	for name, rotated := range map[string]bool{"rotated": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				if rotated {
					appendTo(t, create(t, path+".1"), line("/old"))
				}
				log := create(t, path)
				made := make(chan *Follower, 1)
				go func() {
					o := options(t, path)
					o.Format, o.Tolerance = nil, time.Second
					f, err := NewFollower(o, time.Time{})
					if err != nil {
						t.Error(err)
					}
					made <- f
				}()
				if !rotated {
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				if (len(made) == 1) != rotated {
					t.Fatalf("%d followers", len(made))
				}
				appendTo(t, log, line("/new")+line("/new"))
				f := <-made
				if n := (begun{f, t}).follow(); n != 2 || !f.counts.Timed {
					t.Errorf("%d lines, timed: %v", n, f.counts.Timed)
				}
			})
		})
	}
}
