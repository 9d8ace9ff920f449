package collector_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Using an Entry, a Call or a Statistic after copying it would count twice or nowhere; go vet must see it.
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
