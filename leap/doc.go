// Package leap provides the time base of windowstat: rings of time buckets, and a timeline that numbers and names
// seconds.
//
// An [Array] is Sentinel's LeapArray: a ring of n buckets of equal length. The bucket that covers a time t has the
// index floor(t / length). The ring stores it, together with its index, in the slot with the number index mod n. A
// bucket stays in its slot until a newer bucket needs the slot. A lookup therefore compares the index in the slot with
// the index of t: if the two indexes differ, the slot holds another bucket. Slots are cleared when they are used again,
// so no background goroutine has to clear old buckets. The drawing shows a ring of four buckets at 3.7 s:
//
//	          t = 3.7 s, length 0.5 s, n = 4          index 7 = floor(3.7 / 0.5), slot 3 = 7 mod 4
//
//	slot        0         1         2         3
//	        +---------+---------+---------+---------+
//	index   |    4    |    5    |    6    |    7    |   <- open: 3.5 s to 4.0 s
//	        +---------+---------+---------+---------+
//	start      2.0 s     2.5 s     3.0 s     3.5 s
//
//	at 4.0 s, bucket 8 opens: before the first write to it, slot 0 = 8 mod 4 is cleared and gets index 8
//
// A [Timeline] provides the times. It counts seconds on the monotonic clock, which never goes back. The number of a
// second is its index. Each second also has a name: the wall-clock second that it represents. If the wall clock is set
// forward by a second or more, the names jump forward, too. If names and wall clock differ by less than a second,
// shorter or longer seconds correct the difference. [Timeline] describes what happens if the wall clock is set back.
//
//	monotonic clock   |---- 1 s ----|---- 1 s ----|---- 1 s ----|--- 0.99 s --|     Reading
//	index                   100           101           102           103
//	wall-clock name      03:04:05      03:04:06      04:04:07      04:04:08         Name
//	                                               ^             ^
//	                            clock set forward by an hour:    clock drifts ahead:
//	                            the name jumps                   seconds are up to 1 % shorter
//
// A [Reading] is a value of the monotonic clock. Only a Timeline reads clocks; all other code of this package takes the
// time as an argument. A Timeline never opens a second that its clock has not reached, even if a caller passes a later
// reading.
//
// Line time is a position on the timeline, as a time.Duration: the index of a second, plus the elapsed fraction of that
// second. In the middle of second 100, the line time is 100.5 s, whatever the true length of the second. The index of
// the first second of a Timeline is its Unix time, so line time counts from 1970. Later steps of the wall clock change
// names, but not line time. (The drawings use small indexes.)
//
// Users of package collector need only [Reading], [Clock], [Second], and the methods of [Timeline] that return times,
// seconds and names. Array and the functions that create an Array or a Timeline are exported only for packages node and
// collector, and may change.
//
// # Caveats
//
// An Array has no lock; an owner with several goroutines must provide one. Line times are exact to the nanosecond from
// 1833 to 2106. A Timeline that starts outside of this range takes the nearer end of the range as its first index. The
// names of its seconds are correct anyway.
package leap
