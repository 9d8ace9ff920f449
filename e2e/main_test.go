package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// tests is the number of tests that run concurrently. It may be higher than the number of cores, because the tests
// mostly wait for scrapes.
const tests = "12"

// executables is the directory of the programs that [buildOnce] builds.
var executables string

// TestMain runs the tests, or runs as the service of one of them.
func TestMain(m *testing.M) {
	if run := childMain(); run != nil {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", tests); err != nil {
		panic(err)
	}
	var err error
	if executables, err = os.MkdirTemp("", "windowstat-e2e"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(executables)
	os.Exit(status)
}

// childMain returns the function to run instead of the tests, or nil. A test starts its own executable with environment
// variables that select the function.
func childMain() (run func() error) {
	if run := sentinelMain(); run != nil {
		return run
	}
	if address := os.Getenv(upstreamAddress); address != "" {
		return func() error { return runUpstream(address) }
	}
	if url := os.Getenv(observerURL); url != "" {
		return func() error { return runObserver(url, os.Getenv(observerPassword)) }
	}
	dir := os.Getenv(childDir)
	switch {
	case dir == "":
		return nil
	case os.Getenv(childBegins) != "":
		return func() error { return runPacedChild(dir, os.Getenv(childAddress)) }
	default:
		return func() error { return runChild(dir, os.Getenv(childAddress), os.Getenv(childPush)) }
	}
}
