package replay

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Lines that go back by more than the tolerance are not counted. The report names their log with their number, even if
// another log has many more lines.
func TestLogsThatGoBackAreNamed(t *testing.T) {
	part := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString(common(i, "GET /a", 200))
		}
		return b.String()
	}
	dir := t.TempDir()
	o := options(t, write(t, filepath.Join(dir, "good"), []byte(strings.Repeat(part(0, 1), 100)+part(0, 9000))),
		write(t, filepath.Join(dir, "mixed"), []byte(part(5000, 7000)+part(1000, 1100))))
	var s sums
	r, err := Run(t.Context(), o, s.add)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "pass", s.pass, map[string]int64{"GET /a": 11_100})
	if want := fmt.Sprint([]Behind{{filepath.Join(dir, "mixed"), 2100, 100}}); r.Late != 100 ||
		fmt.Sprint(r.Behind) != want {
		t.Errorf("%d late, %v, want %s", r.Late, r.Behind, want)
	}
}

// If a pipe breaks, its lines up to the break count, and the error is returned.
func TestPipeThatBreaksOff(t *testing.T) {
	var b strings.Builder
	for i := range 50_000 {
		b.WriteString(common(i/100, fmt.Sprintf("GET /%x", i*i*7919), 200))
	}
	packed := pack(t, []byte(b.String())).Bytes()
	o := options(t, "-")
	earned(&o)
	o.Files, o.Stdin = []string{"-"}, bytes.NewReader(packed[:len(packed)/2])
	r, err := Run(t.Context(), o, func(*Second) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "unexpected EOF") || r.Lines < 20_000 {
		t.Errorf("%v, %d lines", err, r.Lines)
	}
}

// A log from stdin that begins a day after a file is read after the file. Otherwise its lines would earn names for the
// lines of the day before.
func TestWhatBeginsLaterIsReadLater(t *testing.T) {
	var file, pipe strings.Builder
	for i := range 10_000 { // more than a block
		file.WriteString(common(i/10, "GET /x", 404))
	}
	for range 20 {
		pipe.WriteString(common(86400, "GET /x", 200))
	}
	o := options(t, "-", write(t, filepath.Join(t.TempDir(), "access.log"), []byte(file.String())))
	earned(&o)
	o.Stdin = strings.NewReader(pipe.String())
	r, err := Run(t.Context(), o, func(*Second) error { return nil })
	if err != nil || r.Lines != 10_020 || r.Unearned < 10_000 {
		t.Errorf("%v; of %d lines %d have no name of their own, want the 10000 of the file at least", err, r.Lines,
			r.Unearned)
	}
}
