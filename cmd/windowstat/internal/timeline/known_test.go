package timeline

import (
	"fmt"
	"testing"
)

func TestKnownIsBounded(t *testing.T) {
	known := Known[int]{}
	for i := range 2*MaxKnown + 1 {
		known.Add(fmt.Append(nil, i), i)
		if len(known) > MaxKnown {
			t.Fatalf("%d names are cached, want at most %d", len(known), MaxKnown)
		}
	}
	if v, ok := known[fmt.Sprint(2*MaxKnown)]; !ok || v != 2*MaxKnown || len(known) != 1 {
		t.Errorf("the last of %d names is %d, want %d", len(known), v, 2*MaxKnown)
	}
}
