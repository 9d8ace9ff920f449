package push

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The docs about costs state how long the pause after an outage may last.
func TestDocumentedPause(t *testing.T) {
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	most := maxWait/2 + maxWait // see deliver
	want := fmt.Sprintf("A pause between attempts is at most %g s", most.Seconds())
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/scale.md does not contain %q", want)
	}
}
