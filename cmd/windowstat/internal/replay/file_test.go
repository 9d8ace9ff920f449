package replay

import (
	"os"
	"path/filepath"
	"testing"
)

// Where a log has ended, it is not read on: a line that was not complete there would be two, and a busy log would never
// end.
func TestALogEndsOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	grow := func(text string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	grow("a\nb")
	f, err := open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var got string
	for all := (blocks{r: f}); err == nil; {
		var x block
		if x, err = all.next(nil); string(x.data) == "b" { // it has met the end
			grow("c\nd\n")
		}
		got += string(x.data) + "|"
	}
	if want := "a\n|b||"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
