package replay

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestProf(t *testing.T) {
	f := os.Getenv("PROF")
	ex, _ := ParseStatuses("5xx")
	bl, _ := ParseStatuses("429")
	n := 0
	began := time.Now()
	r, err := Run(context.Background(), Options{Files: []string{f}, Tolerance: 5 * time.Minute, Exceptions: ex, Blocks: bl, Depth: 4, MaxResources: 1000}, func(s *Second) error { n += len(s.Rows); return nil })
	t.Log(r.Lines, n, err, time.Since(began))
}
