package bench_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
)

// TestMain initializes sentinel-golang, and prints the measured versions with the output of benchmarks, for command
// report.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(clientsOf) != "" {
		clients()
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bench-sentinel-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := bench.InitSentinel(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" {
		fmt.Printf("date: %s\n", time.Now().UTC().Format(time.DateOnly))
		fmt.Printf("go: %s\n", runtime.Version())
		fmt.Printf("cpus: %d\n", runtime.NumCPU())
		for i, v := range bench.Versions() {
			fmt.Printf("module%02d: %s\n", i, v)
		}
	}
	return m.Run()
}
