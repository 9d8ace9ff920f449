package push

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page about costs says how long an outage may be felt after its end.
func TestPauseOfDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	most := maxWait/2 + maxWait // see deliver
	if want := fmt.Sprintf("A pause between attempts is at most %g s", most.Seconds()); !strings.Contains(string(page), want) {
		t.Errorf("docs/scale.md does not say %q", want)
	}
}
