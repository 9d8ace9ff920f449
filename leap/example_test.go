package leap_test

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// The ring counts the requests of the last second in two buckets of half a second. The request at 1.2 s opens the third
// bucket. This bucket takes the slot of the first bucket, so the requests at 0.1 s and 0.4 s no longer count.
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
