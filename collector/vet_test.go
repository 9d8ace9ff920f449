package collector_test

import (
	"os/exec"
	"strings"
	"testing"
)

// With a copy of an Entry, a Call or a Statistic, a call would be counted twice or not at all. go vet must report such
// copies.
func TestVetSeesCopies(t *testing.T) {
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copies").CombinedOutput()
	if err == nil {
		t.Error("go vet has nothing to say")
	}
	for _, want := range []string{"copies.go:9:", "copies.go:12:", "copies.go:17:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing about %s in\n%s", want, out)
		}
	}
}
