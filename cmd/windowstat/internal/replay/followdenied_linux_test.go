package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// A new log without read permission does not stop other logs. It is reported once, and read completely after it becomes
// readable.
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
	o.Format, o.Files, o.Note = format, []string{filepath.Join(dir, "*.log")},
		func(text string) { notes = append(notes, text) }
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
	var read []byte
	looks := func() {
		for range 3 {
			now = now.Add(poll)
			f.match(now)
			for _, l := range f.logs {
				x, err := l.input.look()
				if err != nil {
					t.Fatal(err)
				}
				read = append(read, x.data...)
			}
		}
	}
	asNobody(t, looks)
	if len(f.logs) != 2 || len(notes) != 1 || len(read) != 0 {
		t.Fatalf("%d logs are followed; it said %q, and %q is read", len(f.logs), notes, read)
	}
	rotated := denied + ".1" // rotated while unreadable
	appendTo(t, create(t, rotated), "1700000000.000 404 0.000\n")
	if err := os.Chmod(denied, 0o644); err != nil {
		t.Fatal(err)
	}
	looks()
	if len(f.logs) != 2 || len(notes) != 1 {
		t.Fatalf("%d logs are followed; it said %q", len(f.logs), notes)
	}
	if !bytes.Contains(read, []byte(" 404 ")) || !bytes.Contains(read, []byte(" 200 ")) {
		t.Errorf("of what was written before, %q is read", read)
	}
}

// asNobody calls f in a thread without the privileges of root.
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
