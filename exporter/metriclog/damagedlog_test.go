package metriclog

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// damagedLog holds the original contents of a log with three segments of four seconds.
type damagedLog struct {
	dir   string
	paths []string
	data  [][]byte
	idx   [][]byte
}

// newDamagedLog writes the log and returns its contents. Nothing is damaged yet.
func newDamagedLog(t testing.TB) *damagedLog {
	t.Helper()
	d := &damagedLog{dir: t.TempDir()}
	p := newProcess(t, d.dir, "shop", 0, 850, time.UTC)
	for n := range int64(12) {
		if err := p.second(start.Unix()+n, []string{"a", "b|", "GET /c"}[:1+n%3]...); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	all, err := p.list()
	if err != nil || len(all) != 3 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	for _, s := range all {
		path := p.path(s)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		idx, err := os.ReadFile(path + idxSuffix)
		if err != nil {
			t.Fatal(err)
		}
		d.paths, d.data, d.idx = append(d.paths, path), append(d.data, data), append(d.idx, idx)
	}
	return d
}

// write replaces a segment and its index. If idx is nil, it removes the index.
func (d *damagedLog) write(t testing.TB, i int, data, idx []byte) {
	t.Helper()
	if err := os.WriteFile(d.paths[i], data, 0o644); err != nil {
		t.Fatal(err)
	}
	if idx == nil {
		_ = os.Remove(d.paths[i] + idxSuffix)
	} else if err := os.WriteFile(d.paths[i]+idxSuffix, idx, 0o644); err != nil {
		t.Fatal(err)
	}
}

// completeSeconds returns the part of data up to the end of its last complete second, and the number of lines after it.
func completeSeconds(data []byte) (complete []byte, lines int64) {
	end := bytes.LastIndex(data, []byte("|"+collector.InboundTotal+"|"))
	if end >= 0 {
		if n := bytes.IndexByte(data[end:], '\n'); n >= 0 {
			end += n + 1
		} else {
			end = max(0, bytes.LastIndex(data[:end], []byte("|"+collector.InboundTotal+"|")))
			if end > 0 {
				end += bytes.IndexByte(data[end:], '\n') + 1
			}
		}
	}
	complete = data[:max(end, 0)]
	rest := data[len(complete):]
	lines = int64(bytes.Count(rest, []byte("\n")))
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		lines++
	}
	return complete, lines
}

// nearNewline reports whether a cut is at the end of a line, or within one byte of it.
func nearNewline(data []byte, cut int) bool {
	return bytes.ContainsRune(data[max(cut-2, 0):min(cut+1, len(data))], '\n')
}

// indexVariants returns invalid, incomplete and foreign variants of an index by description.
func indexVariants(idx, other []byte) map[string][]byte {
	wrong := slices.Clone(idx)
	for at := 8; at < len(wrong); at += 16 {
		binary.BigEndian.PutUint64(wrong[at:], binary.BigEndian.Uint64(wrong[at:])+3)
	}
	signs := slices.Clone(idx)
	for at := 0; at < len(signs); at += 16 {
		signs[at] ^= 0x80 // the product with 1000 overflows to the same number
	}
	backwards := slices.Clone(idx)
	for i := 0; i < len(idx); i += 16 {
		copy(backwards[len(idx)-16-i:], idx[i:i+16])
	}
	return map[string][]byte{
		"intact":        idx,
		"missing":       nil,
		"empty":         {},
		"foreign":       other,
		"wrong offsets": wrong,
		"wrong signs":   signs,
		"reversed":      backwards,
		"first half":    idx[:len(idx)/32*16],
		"torn":          idx[:len(idx)-5],
		"later records": idx[48:],
		"text":          bytes.Repeat([]byte("nonsense"), 50),
		"zeros":         make([]byte, 400),
		"ones":          bytes.Repeat([]byte{0xff}, 400),
	}
}
