// Package leap provides the time base of windowstat: rings of time buckets, and the timeline of seconds that they run
// on.
//
// An [Array] is Sentinel's LeapArray: a ring of n buckets of equal length. The bucket of a time t has the index
// floor(t / length), and is stored in the slot with the number index mod n, together with its index. If the index in
// the slot differs from the index of t, the slot holds an old bucket. No goroutine has to clear old buckets:
//
//	          t = 3.7 s, length 0.5 s, n = 4          index 7 = floor(3.7 / 0.5), slot 3 = 7 mod 4
//
//	slot        0         1         2         3
//	        +---------+---------+---------+---------+
//	index   |    4    |    5    |    6    |    7    |   <- open: 3.5 s to 4.0 s
//	        +---------+---------+---------+---------+
//	start      2.0 s     2.5 s     3.0 s     3.5 s
//
//	at 4.0 s the index becomes 8: slot 0 is cleared and gets index 8 before the first write
//
// A [Timeline] provides these times. It numbers seconds by the monotonic clock, which never goes back, and names each
// second after the wall clock, which may jump:
//
//	monotonic clock   |---- 1 s ----|---- 1 s ----|---- 1 s ----|--- 0.99 s --|     Reading
//	index                   100           101           102           103
//	wall-clock name      03:04:05      03:04:06      04:04:07      04:04:08         Name
//	                                               ^             ^
//	                            clock set forward by an hour:    clock drifts ahead:
//	                            names skip                       seconds are up to 1 % shorter
//
// A [Reading] is a value of the monotonic clock. Only a Timeline reads clocks. All other code takes the time as an
// argument. A Timeline never opens a second that its clock has not reached, even if a caller passes a later reading. A
// position on the timeline is called line time: a time.Duration since 1970, with seconds of equal length.
//
// Users of package collector need only [Reading], [Clock], [Second] and the reading methods of [Timeline]. An Array,
// and everything that creates or moves a Timeline, is exported for packages node and collector and may change.
//
// # Caveats
//
// An Array has no lock; its owner must provide one. Times are exact to the nanosecond from 1833 to 2106. A Timeline
// outside of this range numbers its seconds from the nearer end of the range; the names of its seconds are correct.
package leap
