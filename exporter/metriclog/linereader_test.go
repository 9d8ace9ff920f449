package metriclog

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A lineReader returns the same lines as cutting the file at newlines, for any part of the file and for lines near the
// maximum length.
func TestLines(t *testing.T) {
	const row = "1767323045000|2026-01-02 03:04:05|a|1|1|1|1|1|1|1|0"
	for name, file := range map[string][]string{
		"short":              {"a", "", "bc", row},
		"the longest":        {"a", strings.Repeat("b", maxLine-1), "c"},
		"too long by one":    {"a", strings.Repeat("b", maxLine), "c"},
		"too long":           {"a", strings.Repeat("b", maxLine) + row, row},
		"twice as long":      {strings.Repeat("b", 2*maxLine), "c", strings.Repeat("d", 2*maxLine-1), "e"},
		"begins in a buffer": {strings.Repeat("a", maxLine-10), strings.Repeat("b", maxLine-20), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, last := range []string{"", "no newline", strings.Repeat("z", maxLine+1)} {
				data := strings.Join(file, "\n") + "\n" + last
				whole := int64(len(data) - len(last))
				for from := range int64(3) {
					for _, to := range []int64{0, 1, whole - 1, whole, int64(len(data))} {
						for _, end := range []int64{whole - 1, whole, int64(len(data))} {
							checkLines(t, data, from, min(to, end), end)
						}
					}
				}
			}
		})
	}
}

// checkLines compares the lines of a part of a file, and their offsets, with lines cut from data.
func checkLines(t *testing.T, data string, from, to, end int64) {
	t.Helper()
	var want, got []string
	var offsets, starts []int64
	for at := from; at < to; {
		line, _, ok := strings.Cut(data[at:end], "\n")
		if !ok {
			break
		}
		offsets = append(offsets, at)
		at += int64(len(line)) + 1
		if len(line) >= maxLine {
			line = ""
		}
		want = append(want, line)
	}
	lines := newLineReader(bytes.NewReader([]byte(data)), from, to, end)
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got, starts = append(got, string(line)), append(starts, lines.lineStart)
		if len(got) > len(data) {
			t.Fatal("next never returns io.EOF")
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(starts, offsets) {
		t.Errorf("%d bytes, lines from %d to %d, end at %d: lines at %d, want %d", len(data), from, to, end,
			starts, offsets)
	}
	if lines.nextStart < min(to, end) {
		t.Errorf("%d bytes, lines from %d to %d, end at %d: next offset %d", len(data), from, to, end,
			lines.nextStart)
	}
}

// lastLine finds a line of any allowed length, with any number of bytes after it.
func TestLastLine(t *testing.T) {
	for _, length := range []int{0, 1, 100, 4<<10 - 1, 4 << 10, 4<<10 + 1, maxLine - 200} {
		for _, after := range []int{0, 1, 100} {
			for _, before := range []string{"", "a\n", strings.Repeat("a\n", maxLine)} {
				line := strings.Repeat("b", length) + "\n"
				data := before + line + strings.Repeat("c", after)
				path := filepath.Join(t.TempDir(), "log")
				if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
				file, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				o := &segmentReader{File: file, size: int64(len(data))}
				got, end, err := o.lastLine(o.size)
				if err != nil || string(got) != line || end != int64(len(data)-after) {
					t.Errorf("line of %d bytes, %d before and %d after it: got %d bytes up to %d, %v", length+1,
						len(before), after, len(got), end, err)
				}
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
