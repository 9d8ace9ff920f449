// Package leap is the time under windowstat: rings of time buckets and the line of seconds they run on.
//
// An [Array] is Sentinel's LeapArray: a ring of n buckets of equal length. The bucket of a time t has the index
// floor(t / length) and lives in slot index mod n, together with its index, so that a bucket whose index does not
// fit the time asked for is known to be stale without anybody having cleared it:
//
//	          t = 3.7 s, length 0.5 s, n = 4          index 7 = floor(3.7 / 0.5), slot 3 = 7 mod 4
//
//	slot        0         1         2         3
//	        +---------+---------+---------+---------+
//	index   |    4    |    5    |    6    |    7    |   <- open: 3.5 s to 4.0 s
//	        +---------+---------+---------+---------+
//	start      2.0 s     2.5 s     3.0 s     3.5 s
//
//	at 4.0 s the index becomes 8: slot 0 is emptied, marked 8, and only then written to
//
// A [Timeline] gives those times. It numbers seconds by the monotonic clock, which never goes back, and names them
// after the wall clock, which may. A [Reading] is one of the monotonic clock. Only a Timeline reads a clock; everything
// else takes the time as an argument, and no argument moves a Timeline beyond its clock.
//
// What users of package collector need of it is [Reading], [Clock], [Second] and [Timeline], which they read from. An Array, and all
// that makes or moves a Timeline, is exported for packages node and collector, without a promise that it stays as it is.
//
// Caveats: an Array has no lock of its own, its owner provides one. Times are exact to the nanosecond from 1833 to
// 2106; a Timeline that is anchored outside of that numbers its seconds from the nearer end of it, and still names
// them rightly.
package leap
