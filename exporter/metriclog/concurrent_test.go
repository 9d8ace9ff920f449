package metriclog_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// All methods may be called concurrently. No second is written twice or in part.
func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	var mu sync.Mutex
	now := start
	c, err := collector.New(collector.Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := metriclog.New(c,
		metriclog.Options{Dir: dir, App: "shop", MaxFileSize: 1000, MaxFiles: 1000, Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 50
	var all sync.WaitGroup
	done := make(chan struct{})
	for _, f := range []func(){
		func() { _ = w.Flush() }, func() { _ = w.Flush() },
		func() { _ = w.Close() },
		func() { w.Logged(0, 1<<40, func(string, *node.MetricNode) bool { return true }) },
		func() { _, _ = w.Files() },
		func() { w.Counts() },
	} {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
				}
			}
		})
	}
	for range seconds {
		e := c.Resource("a").Enter()
		e.Exit(nil)
		mu.Lock()
		now = now.Add(time.Second)
		mu.Unlock()
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	all.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if rows := (&rig{dir: dir}).checkIndexes(t); rows != seconds {
		t.Errorf("%d rows, want %d", rows, seconds)
	}
}
