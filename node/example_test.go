package node_test

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// The example records calls of one resource in a statistic, and reads them through a view. Services use package
// collector instead.
func Example() {
	// The example uses its own clock. A service passes the zero leap.Clock, which reads the machine's clocks.
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var passed time.Duration
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return passed },
		Wall: func() time.Time { return began.Add(passed) },
	})
	config, err := node.NewConfig(line, node.Options{})
	if err != nil {
		panic(err)
	}
	calls, view := node.New(config, line.Now()), node.NewView(config, line.Now())
	view.Add(calls)

	for range 3 {
		call := calls.Enter(line.Now(), 1)
		passed += 200 * time.Millisecond
		call.Exit(line.Now(), false, 0)
	}
	passed += time.Second
	calls.Seal(line.Now())

	s := view.Snapshot(line.Now(), nil)
	fmt.Printf("second %s: %d calls, average %v\n", s.Last.Start.Format(time.TimeOnly), s.Last.Pass, s.Last.AvgRT())
	// Output: second 03:04:05: 3 calls, average 200ms
}
