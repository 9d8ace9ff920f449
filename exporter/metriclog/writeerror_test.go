package metriclog

import (
	"os"
	"testing"
	"time"
)

// If the index cannot be written, the rows that were written before it are removed. Otherwise the repeated second would
// be out of order, and would count as lost although the log has it.
func TestIndexWriteErrorRemovesRows(t *testing.T) {
	dir := t.TempDir()
	p := newProcess(t, dir, "shop", 0, 1<<20, time.UTC)
	if err := p.second(start.Unix(), "a"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(p.path(p.current))
	if err != nil {
		t.Fatal(err)
	}
	// The same index, opened for reading only.
	index, err := os.Open(p.idx.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.idx.Close(); err != nil {
		t.Fatal(err)
	}
	p.idx = index
	const next = 1
	if err := p.second(start.Unix()+next, "a"); err == nil {
		t.Fatal("no error for an index that cannot be written")
	}
	after, err := os.ReadFile(p.path(p.current))
	if err != nil || string(after) != string(before) {
		t.Errorf("after the error, the segment has\n%swant\n%s%v", after, before, err)
	}
	if err := p.second(start.Unix()+next, "a"); err != nil {
		t.Errorf("the repeated second: %v", err)
	}
	if rows, malformed := search(t, Searcher{Dir: dir}, Query{}); len(rows) != 4 || malformed != 0 {
		t.Errorf("%d rows and %d malformed lines, want 4 and 0", len(rows), malformed)
	}
}
