package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// Several logs form one service. Each line is counted once, in its second, through rotations, restarts, and logs that
// appear and disappear under a pattern.
func TestFollowManyLogs(t *testing.T) {
	format, err := accesslog.Nginx("$msec $status $request_time")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, dir, true, format)
		hosts := filepath.Join(dir, "hosts")
		if err := os.Mkdir(hosts, 0o755); err != nil {
			t.Fatal(err)
		}
		s.options.Files = []string{s.path, filepath.Join(hosts, "*.log")}
		s.paths = []string{s.path, filepath.Join(hosts, "a.log"), filepath.Join(hosts, "b.log")}
		for _, path := range s.paths[:2] {
			appendTo(t, create(t, path), "123456789.000 200 0.000\n") // before the first process starts
		}
		link := filepath.Join(hosts, "link.log")
		if err := os.Symlink(s.paths[1], link); err != nil {
			t.Fatal(err)
		}
		s.start()
		s.serve(10 * time.Second) // b.log appears
		rename(t, s.paths[1], s.paths[1]+".1")
		s.serve(5 * time.Second)
		copyTruncate(t, s.path, s.path+".1", false, func() {})
		s.serve(5 * time.Second)
		remove(t, link)
		// The rotated name also matches the pattern, but is not a separate log.
		rename(t, s.paths[2], filepath.Join(hosts, "b-20260102.log"))
		s.serve(5 * time.Second)
		s.kill()
		s.serve(20 * time.Minute) // no process follows
		rename(t, s.paths[1], s.paths[1]+".2")
		s.paths = append(s.paths, filepath.Join(hosts, "c.log"))
		s.serve(3 * time.Second)
		s.start()
		s.serve(5 * time.Second)
		remove(t, s.paths[3])
		s.paths = s.paths[:3]
		s.serve(2 * closeAfter)
		s.paths = append(s.paths, filepath.Join(hosts, "c.log"))
		s.serve(10 * time.Second)
		time.Sleep(s.options.Tolerance + 3*time.Second)
		s.kill()
		s.check()
		t.Logf("%d calls", s.calls)
	})
}

// A log with a long backlog does not make lines of other logs late, and its own lines are not late either. Lines that
// are late within their own log count as late.
func TestFollowLogsThatAreBehind(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		after := time.Now()
		const seconds = 2000
		o := options(t)
		o.Tolerance = 2 * time.Second
		for i := range 3 {
			path := filepath.Join(dir, fmt.Sprint(i, ".log"))
			o.Files = append(o.Files, path)
			f := create(t, path)
			for n := range seconds {
				for range 1 + 99*(i/2) { // the last log has many blocks
					appendTo(t, f,
						fmt.Sprintf("%s [%s] \"GET /%d HTTP/1.1\" 200 1\n", "::1 - -",
							after.Add(time.Duration(n+1)*time.Second).UTC().Format("02/Jan/2006:15:04:05 -0700"), i))
				}
			}
			appendTo(t, f,
				fmt.Sprintf("::1 - - [%s] \"GET /late HTTP/1.1\" 200 1\n",
					after.Add(time.Second).UTC().Format("02/Jan/2006:15:04:05 -0700")))
		}
		time.Sleep(seconds * time.Second)
		f, err := NewFollower(o, after)
		if err != nil {
			t.Fatal(err)
		}
		n := (begun{f, t}).follow()
		if r := f.Report(); n != 102*seconds+3 || r.Late != 3 || r.Uncounted() != 3 {
			t.Errorf("%d lines, %d late, want %d and 3", n, r.Late, 102*seconds+3)
		}
	})
}

// A deleted file that matches a pattern is closed after a time without growth, to free its disk space.
func TestFollowClosesWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"a.log", "b.log"} {
			appendTo(t, create(t, filepath.Join(dir, name)), now())
		}
		f := begin(t, filepath.Join(dir, "*.log"), time.Time{})
		for _, want := range []int{2, 2, 1} {
			f.rounds()
			if n := len(f.logs); n != want {
				t.Errorf("%d logs are open, want %d", n, want)
			}
			_ = os.Remove(filepath.Join(dir, "b.log")) // the first time
			time.Sleep(closeAfter/2 + poll)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A new log whose rotated file cannot be opened does not stop other logs. It is read when the file can be opened.
func TestALogThatCannotBeOpenedStopsNoOther(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := create(t, filepath.Join(dir, "a.log"))
		f := begin(t, filepath.Join(dir, "*.log"), time.Time{})
		torn := write(t, filepath.Join(dir, "b.log.1.gz"), []byte("\x1f\x8b\x08"))
		appendTo(t, create(t, filepath.Join(dir, "b.log")), now())
		if n := f.rounds(); n != 0 {
			t.Errorf("%d lines, and the rotated file is torn", n)
		}
		appendTo(t, a, now())
		if n := f.rounds(); n != 1 {
			t.Errorf("%d lines of the other log, want 1", n)
		}
		remove(t, torn)
		if n := f.rounds(); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}
