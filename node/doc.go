// Package node counts the calls of a resource, second by second, and loses no count.
//
// # Reading
//
// A [MetricNode] is the record of one sealed second; [Columns] lists its numbers, for code that shows or writes whole
// records. A [Window] holds the counts of the last second or minute. A [Snapshot] holds the totals and the calls in
// flight. A [Histogram] is a distribution of response times. [Codes] holds completions by code. Each is a plain value
// or a copy. [Options] configure statistics. A [View] reads one or several statistics by readings and indexes of a
// [leap.Timeline]; collector.View reads by the wall clock.
//
// # Recording
//
// A [Statistic] is Sentinel's StatisticNode: it counts the calls that passed, were blocked, completed and failed, and
// measures their response times and the calls in flight. It keeps a window of a second (the second window), a window of
// a minute (the minute window), and totals. A [Call] is a call in flight. A [Loan] is a call that waits for a later
// bucket. A [Quota] holds the number of calls that may pass in a second. A [Config] holds the settings that all
// statistics of a process share. Package collector drives these types. Their exported methods exist for package
// collector and may change. To count calls, use package collector.
//
// Time is an argument: a [leap.Reading] of the timeline. A reading that the clock has not reached is replaced with the
// current reading. Only [Call.End] reads the clock. The position of a bucket on the timeline is a time.Duration since
// 1970, called line time.
//
// # Promises
//
// One stamp: each event is recorded with one reading, in one bucket. All windows, totals and histograms are derived
// from this bucket. A single change records the completion of a call; no reader sees half of it.
//
// Conservation: at any time, the sealed seconds and the open second add up to the totals, and the totals equal the
// number of recorded calls.
//
// Finality: a second is sealed when the statistic has moved past it. Its record then never changes. If a caller reads
// the clock before a boundary and records an event after the boundary, the event counts in the second that is open at
// the time of recording.
//
// Idle is zero: an idle window has no calls, an average of 0 and no minimum. It never has an invented value.
//
// # Protocol
//
// Sentinel's LeapArray keeps the counters of each bucket in atomic variables, and resets a bucket when its slot is
// needed again. Events get lost when a writer adds to a bucket during the reset. A Statistic separates the open bucket,
// where writers add, from the ring of past buckets, where nothing is ever added late:
//
//	      writers                    the goroutine that turns the bucket            readers
//	         |                                      |                                  |
//	+--------+---------+                            v                                  v
//	| stripe | stripe  |  ------ fold ------> +-----------+ --- seal ---> +--------------------+
//	| tally  | tally   |  (all stripe locks)  | window    |  (once per    | records of seconds |
//	| cells  | cells   |                      | of buckets|   second)     | and histograms     |
//	+------------------+                      +-----------+               +--------------------+
//	   open bucket                             2 seconds                     up to an hour
//	   mutable                                 past buckets                  packed, final
//
// The open bucket is divided into stripes with a lock each. All stripes are always in the same bucket. A count is
// therefore either in an open stripe or in the history, never in both and never in neither. The life of one call across
// a boundary:
//
//	call                                stripe                        the first goroutine after the boundary
//	----                                ------                        ------------------------------------
//	Enter: load the end mark            end mark: open, 10.0 s
//	       add 1 to the word  ------->  word: 1 call, stamp 9.7 s
//	       load the end mark again:
//	       unchanged, so done
//	                                                                  10.0 s: Exit, Hold, Seal or a reader
//	                                                                  finds now >= end
//	                                                           turn:  lock mu and all stripes
//	                                    end mark: turned       <----  replace the end marks
//	                                    word and tally are cut -----> fold: sum -> window and totals
//	                                    cells are moved        -----> seal: second 9 -> record, histogram
//	                                    end mark: open, 10.5 s <----  open the next bucket
//	                                                                  unlock
//	Exit:  lock the stripe
//	       count the completion ----->  tally: 1 completion           in second 10
//	       unlock
//
// A call enters with one atomic addition and without a lock. Its exit counts in the stripe of its entry, under the lock
// of that stripe. If a writer holds a stripe and finds that the bucket has ended, it releases the stripe, turns the
// statistic, and locks the stripe again.
//
// # The end mark
//
// Each stripe holds the end of the open bucket in an atomic word, the end mark. All stripes of a statistic have the
// same end mark.
//
//	 63                                                                      1   0
//	+--------------------------------------------------------------------------+---+
//	|  end of the open bucket: a reading, in nanoseconds                       | S |
//	+--------------------------------------------------------------------------+---+
//	   S = 1: calls take the slow path, under the lock (the statistic has counters, or is turned or retired)
//
//	state     end mark               Statistic.end   calls                     left by
//	-----     --------               -------------   -----                     -------
//	open      end of the bucket, S   the same        enter without a lock      turning, SetCounters, Retire
//	                                                 if S is 0
//	turned    closedMark             past            wait for mu or the lock   the end of the turn
//	retired   closedMark             MaxInt64        get the zero Call         never
//
// A goroutine changes end marks only while it holds mu and the locks of all stripes. The following functions change
// them: advance (open to turned), openBucket (turned to open), [Statistic.SetCounters] (open with another S),
// [Statistic.Retire] (open to retired, or back to open if a call has entered), and grow (a new stripe gets the end mark
// of the first one). [Statistic.Init] sets the first end mark before the statistic is shared.
//
// The writer without a lock and the goroutine that changes the end mark access the two words in opposite order:
//
//	Enter                                  turn, SetCounters, Retire
//	-----                                  -------------------------
//	1. load the end mark                   1. store another end mark
//	2. add to the word                     2. load the word
//	3. load the end mark                   3. decide by the word
//
// All goroutines see atomic operations in the same order. Either the goroutine on the right sees the addition in its
// step 2, or the writer on the left sees the new end mark in its step 3 and calls reconcileEnter. With the locks held,
// reconcileEnter decides: the call counts in the next bucket, is reported to the counters, or is taken back.
//
// # The call word
//
// An entering call changes two sums with one addition: the number of entries, and the sum of their stamps. The word
// that it adds to therefore has two parts:
//
//	 63                                                   26 25                            0
//	+------------------------------------------------------+-------------------------------+
//	|  sum of the stamps of all entries, in ticks of       |  number of entries            |
//	|  4096 ns, each rounded up; 38 bits, wraps            |  26 bits, wraps               |
//	+------------------------------------------------------+-------------------------------+
//
//	n calls with the stamps t1 ... tn spend  n * end - (t1 + ... + tn)  until the end of the bucket
//
// The difference of two values of the word is exact if fewer than 67 million calls enter by a stripe in a bucket. The
// sum of stamps wraps. The call-seconds that follow from it are exact nevertheless, because they differ by less than
// six days from the call-seconds of the calls that were in flight when the bucket began. An exit knows the exact stamp
// of its entry, and corrects the rounding.
//
// # Call-seconds
//
// A call spends time from the stamp of its entry to the stamp of its exit, exactly, also if buckets turn in between.
// Little's law holds: over all seconds, the call-seconds equal the sum of the response times. While a call is in
// flight, its share is rounded by up to 4.1 µs.
//
// Sealed seconds are final, so a late stamp corrects the open second. A late entry adds the time that the call spent
// before the open second. A late exit subtracts the time that was counted after the call had ended. If the correction
// would make a second negative, the second reports 0 and the remainder carries over into the next one.
//
// In each second that the statistic skips, every call in flight spends exactly one second. If skipped seconds were
// slewed, the next recorded second contains the difference. The call-seconds of calls that borrowed from a skipped
// bucket are off by this difference.
//
// # Maximum in flight
//
// With one stripe the maximum is exact. Between two exits the number of calls in flight only grows. It is therefore
// enough to compare the number with the maximum before each exit and at the end of the second. The maxima of several
// stripes belong to different instants. In that case the record has a lower bound, see minConcurrency. While a
// statistic has counters, all calls enter by the first stripe, and the maximum is exact.
//
// # Locks
//
// The order is: View.mu, Statistic.mu, the first stripe, the other stripes in the order of their list, the lock of the
// timeline. A writer holds the lock of one stripe and nothing else. The fields after Statistic.mu change only while mu
// and the locks of all stripes are held. To read them, mu or the lock of one stripe is enough. There are two
// exceptions, which mu alone guards: the position of lookups in the store of records, and the cached peak. A reader of
// records therefore needs mu. Readers of sealed seconds take mu and delay no writer. Readers of the open bucket take
// all locks.
//
// Consistency: a sealed second is exact. A reading of the open bucket contains each completion as a whole, and for each
// stripe the passes and the calls in flight of one instant. Calls that enter through different stripes during the
// reading may be seen in another order: a reading may contain a call and miss an earlier one.
//
// # Costs
//
// A call costs one atomic addition to enter, and one lock, almost never contended, to leave. A statistic begins with
// one stripe. It gets more, up to twice the number of processors and at most sixteen, if goroutines find a stripe
// locked in more than one of 256 calls. A reading of a window holds the locks of all stripes for a short sum. A turn
// costs less than a microsecond for each second with events, two or three microseconds with all stripes, more with many
// buckets, and nothing for idle seconds. A statistic turns when it is written or read, never by itself. A statistic
// takes some 300 bytes until something is counted. Each further stripe takes 192 bytes. The response times of one
// second take as much memory as their cells need.
//
// # Caveats
//
// Statistics are lost when the process ends, unless an exporter has read them. Counts and sums of response times stop
// at the largest int64 instead of wrapping. A sum of response times reaches it after 292 years.
//
// One goroutine turns a bucket for all other goroutines, twice a second by default. If the machine preempts this
// goroutine during the turn, writers of the resource wait for it.
//
// The maximum in flight over several stripes or leaves is a lower bound. One part of the bound is the average in
// flight. If a goroutine loses its processor twice within Enter, for a second each time, this average may exceed the
// truth.
//
// Up to 67 million calls can be in flight at a stripe, or enter by it in one bucket. The call-seconds of a bucket of a
// stripe must differ by less than six days from the call-seconds of the calls in flight at its start.
package node
