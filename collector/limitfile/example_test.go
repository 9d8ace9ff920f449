package limitfile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
)

// A service loads its limits from a file, and reloads them when the file changes.
func Example() {
	// A fixed clock for the example. Omit Now to use the real clock.
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "limits")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "limits.yml")
	if err := os.WriteFile(path, []byte("limits: [{resource: GET /search, qps: 2}]"), 0o600); err != nil {
		panic(err)
	}

	watcher, err := limitfile.Watch(c, path, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go watcher.Run(ctx)

	for range 3 {
		_, err := c.Resource("GET /search").TryEnter()
		fmt.Println("blocked:", errors.Is(err, collector.ErrBlocked))
	}
	// Output:
	// blocked: false
	// blocked: false
	// blocked: true
}
