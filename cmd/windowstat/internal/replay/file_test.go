package replay

import (
	"os"
	"path/filepath"
	"testing"
)

// A log that ends is not read beyond its end. Otherwise an incomplete last line would count twice, and the replay of a
// busy log would never end.
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
		if x, err = all.next(nil); string(x.data) == "b" { // the reader has reached the end
			grow("c\nd\n")
		}
		got += string(x.data) + "|"
	}
	if want := "a\n|b||"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
