//go:build fleet

package e2e

import (
	"os"
	"testing"
)

// childCrowd marks the test's executable as the process of TestSamplerTruthOfMany.
const childCrowd = "WINDOWSTAT_E2E_CROWD"

// TestSamplerTruthOfMany is TestSamplerTruth with 50,000 further series, in a process that has one processor and a busy
// loop.
func TestSamplerTruthOfMany(t *testing.T) {
	t.Parallel()
	if os.Getenv(childCrowd) == "" {
		p := command(t, os.Args[0], "-test.run=^TestSamplerTruthOfMany$", "-test.v", "-test.timeout=3m")
		p.Env = append(os.Environ(), childCrowd+"=1")
		log, err := p.CombinedOutput()
		t.Logf("%s", log)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	watch{seconds: 16, crowd: 50_000, programs: []program{prometheus3, victoria}, busy: true}.run(t)
}
