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

// What the tests of the adapters for frameworks share is built into nothing.
func TestServicetestIsForTestsAlone(t *testing.T) {
	var users []string
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}: {{.Imports}}", "../...").CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if _, imports, _ := strings.Cut(line, ": "); strings.Contains(imports, "/servicetest") {
			users = append(users, line)
		}
	}
	if err != nil || len(users) > 0 {
		t.Errorf("%v: imported by %q", err, users)
	}
}
