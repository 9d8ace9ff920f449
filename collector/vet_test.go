package collector_test

import (
	"os/exec"
	"strings"
	"testing"
)

// If a program copies an Entry, a Call or a Statistic, a call may be counted twice or not at all. go vet must report
// such copies.
func TestVetSeesCopies(t *testing.T) {
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copies").CombinedOutput()
	if err == nil {
		t.Error("go vet reports no copy")
	}
	for _, want := range []string{"copies.go:9:", "copies.go:12:", "copies.go:17:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("go vet does not report %s in\n%s", want, out)
		}
	}
}
