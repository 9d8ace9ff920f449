package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Most of a log was late where newer lines came before older ones, as in cat newer older. It is counted as if it were in order,
// be it a file, packed, or from a pipe.
func TestNewerLinesBeforeOlderOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	part := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			for range 3 {
				b.WriteString(common(i+r.IntN(20), fmt.Sprintf("GET /a%d", r.IntN(5)), []int{200, 500}[r.IntN(2)]))
			}
			if i%50 == 0 {
				b.WriteString("rubbish\n\n")
			}
		}
		return b.String()
	}
	long := strings.Repeat("x", maxLine+10) + "\n"
	older, middle, newer := part(0, 2000), part(3000, 3500), part(5000, 9000)
	want, ordered := replay(t, older+long+middle+newer, earned)
	if ordered.Late != 0 || ordered.Lines != 1+2*130+3*6500 {
		t.Fatalf("%+v", ordered)
	}
	for name, text := range map[string]string{
		"newer, older":         newer + older + long + middle,
		"newer, middle, older": newer + long + middle + older,
		"in turns":             middle + newer + long + older,
	} {
		for _, from := range []string{"file", "packed", "pipe"} {
			path := filepath.Join(t.TempDir(), "access.log")
			var got sums
			var report *Report
			switch from {
			case "file":
				got, report = replay(t, text, earned)
			case "packed":
				write(t, path, pack(t, []byte(text)).Bytes())
				got, report = replay(t, "", earned, func(o *Options) { o.Files = []string{path} })
			default:
				got, report = replay(t, "", piped(text))
			}
			if report.Late != 0 || report.Outliers != 0 || report.Lines != ordered.Lines || report.Malformed != ordered.Malformed {
				t.Errorf("%s, %s: %d lines, %d late, %d outliers, %d malformed", name, from, report.Lines, report.Late, report.Outliers, report.Malformed)
			}
			equal(t, name+" "+from, got.pass, want.pass)
		}
	}
}

// Lines that are late one by one, and outliers, make no parts.
func TestStragglersMakeNoParts(t *testing.T) {
	o := &order{tolerance: int64(time.Minute)}
	for i := range int64(1000) {
		o.add((1000 + i) * nanos)
		if i%10 == 0 {
			o.add((1000 + i - 300) * nanos)
		}
		if i%100 == 99 {
			o.add((1000 + i + 5000) * nanos)
		}
	}
	if len(o.parts) != 0 {
		t.Errorf("%+v", o.parts)
	}
}

// A pipe that breaks off is counted up to there, and said.
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
