package node_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// CountsBefore takes the index of a second. It returns true if all records of this second and of later seconds are
// kept. It returns false if the second is after the open one. TestAgainstOracle checks the counts that CountsBefore
// returns.
func TestCountsBeforeAreKnownAsLongAsTheHistory(t *testing.T) {
	const history = 100
	r := newRig(t, node.Options{History: history * time.Second})
	const seconds = 300
	for i := range int64(seconds) {
		at := time.Duration(i) * time.Second
		r.call(at, ms, false)
		r.Seal(at + time.Second)
	}
	for index, known := range map[int64]bool{
		0: false, seconds - 3*history/2: false, seconds - history/2: true, seconds: true, seconds + 1: false,
	} {
		if got, ok := r.view.CountsBefore(r.zero + index); ok != known || ok && got.Complete != index {
			t.Errorf("before second %d: %+v, %t", index, got, ok)
		}
	}
}
