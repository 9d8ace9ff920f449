package e2e

import (
	"flag"
	"os"
	"testing"
)

// tests is how many tests run at a time. They mostly wait for scrapes, so they need not be as few as there are cores.
const tests = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", tests); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
