package replay

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// If a rotation is undone, the old file gets its name back. It continues at its offset, and no line is read twice.
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
		time.Sleep(closeAfter + time.Second) // closes the other file, but not this one
		appendTo(t, f, "four\n")
		r.want(t, "one\ntwo\nthree\nfour\n")
	})
}
