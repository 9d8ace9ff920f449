package leap_test

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// The ring counts the requests of the last second in two buckets of half a second. When a bucket is a second old, the
// ring clears it and uses its slot for the next bucket.
func Example() {
	requests, err := leap.NewArray[int](time.Second, 2)
	if err != nil {
		panic(err)
	}
	for _, at := range []time.Duration{100, 400, 600, 1200} {
		at *= time.Millisecond
		*requests.Open(at)++
		sum := 0
		for _, n := range requests.Window(at, time.Second) {
			sum += *n
		}
		fmt.Printf("at %v: %d\n", at, sum)
	}
	// Output:
	// at 100ms: 1
	// at 400ms: 2
	// at 600ms: 3
	// at 1.2s: 2
}
