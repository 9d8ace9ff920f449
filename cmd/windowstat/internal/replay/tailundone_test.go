package replay

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A rotation that is undone gives an old file its name again: it goes on where it was, and nothing of it is read twice.
func TestRotationThatIsUndone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	synctest.Test(t, func(t *testing.T) {
		f := create(t, path)
		appendTo(t, f, "one\n")
		r := follow(t, path, false)
		r.want(t, "one\n")
		rename(t, path, path+".1")
		g := create(t, path)
		appendTo(t, g, "two\n")
		r.want(t, "one\ntwo\n")
		rename(t, path, path+".2")
		rename(t, path+".1", path)
		appendTo(t, f, "three\n")
		r.want(t, "one\ntwo\nthree\n")
		time.Sleep(closeAfter + time.Second) // the other file is closed, and not this one
		appendTo(t, f, "four\n")
		r.want(t, "one\ntwo\nthree\nfour\n")
	})
}
