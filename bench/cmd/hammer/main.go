// Command hammer counts the additions that windows lose when their buckets turn under load: windowstat's windows,
// sentinel-golang's, and the simple ones. It prints one line for each, in the format of Go benchmarks.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/alibaba/sentinel-golang/logging"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/bench/hammer"
)

func main() {
	length := flag.Duration("time", 40*time.Second,
		"how long to hammer the rings of half seconds; a quarter of it for the others")
	flag.Parse()
	// Sentinel logs every addition that it drops to the console.
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel + 1)
	if err := run(os.Stdout, *length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, length time.Duration) error {
	const (
		half = 500 * time.Millisecond
		tick = 10 * time.Millisecond
		ms   = time.Millisecond
	)
	coarse, err := hammer.Windowstat(2)
	if err != nil {
		return err
	}
	fine, err := hammer.Windowstat(100)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		target  hammer.Target
		writers int
		length  time.Duration
	}{
		{coarse, 8, length},
		{hammer.Sentinel(20, half), 8, length},
		{fine, 2, length / 4},
		{hammer.Sentinel(200, tick), 2, length / 4},
		// Its reset is very short, so losses become visible only after many turns.
		{hammer.Simple("sentinel-ring/2000x1ms", bench.NewSentinelRingOf(2000, ms), ms, 1000), 2, length / 4},
		{hammer.Simple("sub-window-list/200x10ms", bench.NewSubWindowListOf(200, tick), tick, 100), 2, length / 4},
		{hammer.Simple("second-map/60x1s", bench.NewSecondMap(), time.Second, 1), 2, length / 4},
		{hammer.Simple("fixed-window/1x1s", bench.NewFixedWindow(), time.Second, 0), 2, length / 4},
	} {
		for _, result := range hammer.Run(r.target, r.writers, r.length) {
			if _, err := fmt.Fprintln(w, line(result, r.writers)); err != nil {
				return err
			}
		}
	}
	return nil
}

// line formats a result like a benchmark.
func line(r hammer.Result, writers int) string {
	name := fmt.Sprintf("BenchmarkLost/%s/writers=%d/%s-%d", r.Target, writers, r.Kind, runtime.GOMAXPROCS(0))
	return fmt.Sprintf("%-68s %12d %10d lost %10.2f lost-ppm %6d turns %6d wrong-turns %10d worst-lost %9.2f Madd "+
		"%7.2f Madd/s",
		name, r.Added, r.Lost, float64(r.Lost)/float64(max(r.Added, 1))*1e6, r.Turns, r.Wrong, r.Worst,
		float64(r.Added)/1e6, float64(r.Added)/1e6/r.Took.Seconds())
}
