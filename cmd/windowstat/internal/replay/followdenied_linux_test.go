package replay

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// A log that appears and may not be read stops no other: that is said once, and when it may be read, all of it is.
func TestRegressionUnreadableLogEndedFollowing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	format, err := accesslog.Nginx("$msec $status $request_time")
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	o := options(t)
	o.Format, o.Files, o.Note = format, []string{filepath.Join(dir, "*.log")}, func(text string) { notes = append(notes, text) }
	first := filepath.Join(dir, "a.log")
	appendTo(t, create(t, first), "1700000000.000 200 0.000\n")
	f, err := NewFollower(o, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	denied := filepath.Join(dir, "b.log")
	appendTo(t, create(t, denied), "1700000000.000 200 0.000\n")
	if err := os.Chmod(denied, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	asNobody(t, func() {
		for range 3 {
			now = now.Add(poll)
			f.match(now)
		}
	})
	if len(f.logs) != 1 || len(notes) != 1 {
		t.Fatalf("%d logs are followed; it said %q", len(f.logs), notes)
	}
	if err := os.Chmod(denied, 0o644); err != nil {
		t.Fatal(err)
	}
	f.match(now.Add(poll))
	if len(f.logs) != 2 || len(notes) != 1 || len(f.unreadable) != 0 {
		t.Fatalf("%d logs are followed; it said %q", len(f.logs), notes)
	}
	x, err := f.logs[1].look(now)
	if err != nil || len(x.data) == 0 {
		t.Errorf("what was written before is not read: %q, %v", x.data, err)
	}
}

// Rotation makes a file before it sets who may read it. Who comes in between waits, and says so once; for ever only where a pattern
// stands for the logs.
func TestRegressionRotatedLogThatMayNotYetBeReadEndedFollowing(t *testing.T) {
	for _, matched := range []bool{false, true} {
		dir := t.TempDir()
		for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		path, notes := filepath.Join(dir, "access.log"), 0
		appendTo(t, create(t, path), "one\n")
		tail, err := newTail(path, time.Unix(1, 0), &opened{note: func(string) { notes++ }})
		if err != nil {
			t.Fatal(err)
		}
		tail.quit = matched
		rename(t, path, path+".1")
		appendTo(t, create(t, path), "two\n")
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		var read string
		look := func() error {
			for {
				x, err := tail.look()
				if read += string(x.data); err != nil || !x.upTo.IsZero() {
					return err
				}
			}
		}
		asNobody(t, func() { err = errors.Join(look(), look()) })
		if err != nil || notes != 1 || read != "one\n" {
			t.Errorf("%q is read, with %d notes: %v", read, notes, err)
		}
		tail.denied = tail.denied.Add(-linger)
		if asNobody(t, func() { err = look() }); (err == nil) != matched {
			t.Errorf("after a minute, where a pattern stands for the log: %v: %v", matched, err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := look(); err != nil || read != "one\ntwo\n" || !tail.denied.IsZero() {
			t.Errorf("%q is read: %v", read, err)
		}
		if err := tail.close(); err != nil {
			t.Error(err)
		}
	}
}

// asNobody calls f without the rights of root, in this thread alone.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		const same = ^uintptr(0)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uintptr(uid), same); errno != 0 {
			t.Fatal(errno)
		}
	}
	become(65534)
	defer become(0)
	f()
}
