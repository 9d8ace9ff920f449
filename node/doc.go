// Package node counts the calls of a resource, second by second, and loses no count.
//
// # Reading
//
// A [View] reads one or several statistics. Its methods take readings and second indexes of a [leap.Timeline]. The
// methods of collector.View take wall-clock times instead. All results are copies, so calls that are recorded later do
// not change them. Results have these types:
//
//   - A [MetricNode] is the record of one sealed second. [Columns] lists its numbers, for code that shows or writes
//     whole records.
//   - A [Window] holds the counts of the last second or minute.
//   - A [Snapshot] holds the totals and the calls in flight.
//   - A [Histogram] is a distribution of response times, and [Codes] holds completions by code.
//
// # Recording
//
// A [Statistic] is Sentinel's StatisticNode: it counts passes, blocks, completions and exceptions, and measures
// response times and the calls in flight. It keeps a window of a second (the second window), a window of a minute (the
// minute window), and totals. All statistics of a process share a [Config], which is made from [Options].
//
// A [Call] is a call in flight. A [Loan] is a call that waits for a later bucket. A [Quota] limits the number of calls
// that may pass in a second. Package collector drives these types. Their exported methods exist for package collector
// and may change. To count calls, use package collector.
//
// The caller reads the clock and passes the time of an event as a [leap.Reading]; only [Call.End] takes this time from
// the clock itself. A reading that is ahead of the clock opens no bucket before its time: the event counts in the
// bucket that is open at the time of recording. The position of a bucket on the timeline is a time.Duration since 1970,
// called line time.
//
// # Terms
//
// The comments of this package use these terms:
//
//   - A leaf is one Statistic: it counts the calls that one origin makes to one resource through one entrance
//     (Sentinel's context). A view reads one or several leaves as one.
//   - An admitted call is a pass, and a refused call is a block. A call is in flight from its entry to its exit. The
//     exit is a completion. A batch is one call in flight that counts as n passes and n completions.
//   - The stamp of an event is the reading with which it is recorded. A stamp is late if it is before the bucket in
//     which the event counts.
//   - Writers add to the open bucket. The open second is the second that contains the open bucket. To turn is to close
//     the open bucket and to open a later one. A statistic turns when it is written or read, never by itself.
//   - A second is sealed when the statistic turns past it. Its record then never changes. If a statistic is not used
//     for some seconds, one turn ends the open second and skips the seconds after it.
//   - Call-seconds are time in flight, summed over calls. Two calls of half a second each spend one call-second.
//   - Each bucket has a slide: the number of passes in the window of one second that ends with this bucket. The peak of
//     a second is the highest slide of its buckets.
//   - A cell is a range of response times. Histograms count response times by cell.
//   - The counters of a statistic are integers outside of the statistic. They follow its calls in flight, for limits on
//     concurrency; see [Statistic.SetCounters].
//   - While the timeline slews, seconds are up to 1 % shorter or longer, to correct a difference to the wall clock; see
//     [leap.Timeline].
//
// # Promises
//
// One stamp: each event is recorded with one reading, in one bucket. All windows, totals and histograms are derived
// from this bucket. A completion, its response time, its error and its code are recorded in a single change, so no
// reader sees half of the change.
//
// Conservation: at any time, the sealed seconds and the open second add up to the totals, and the totals equal the
// number of recorded calls.
//
// Finality: the record of a sealed second never changes. If a caller reads the clock before a boundary and records an
// event after the boundary, the event counts in the second that is open at the time of recording.
//
// Idle is zero: an idle window has no calls, an average of 0 and no minimum. It never has an invented value.
//
// # Protocol
//
// Sentinel's LeapArray keeps the counters of each bucket in atomic variables, and resets a bucket when its slot is
// needed again. If a writer adds an event to a bucket during the reset, the event gets lost. A Statistic therefore
// stores the open bucket separately from the ring of past buckets. Writers add to the open bucket only, and past
// buckets never change:
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
// The open bucket is divided into stripes. Each stripe has a lock, and counts the calls that entered through it. All
// stripes change to the next bucket together. A count is therefore either in a stripe or in the history, but never in
// both. The drawing follows one call that is in flight when the bucket ends at 10.0 s:
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
//	                                    end mark: turning      <----  replace the end marks
//	                                    word is read, tally: 0 -----> fold: sum -> window and totals
//	                                    cells: 0               -----> seal: second 9 -> record, histogram
//	                                    end mark: open, 10.5 s <----  open the next bucket
//	                                                                  unlock
//	Exit:  lock the stripe
//	       count the completion ----->  tally: 1 completion           in second 10
//	       unlock
//
// A call enters with one atomic addition and without a lock. Its exit counts in the stripe through which the call
// entered, under the lock of that stripe. If a writer has locked a stripe and finds that the bucket has ended, it
// unlocks the stripe, turns the statistic, and locks the stripe again.
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
//	   S = 1: calls take the slow path, under the lock (the statistic has counters, is turning, or is retired)
//
//	state     end mark               Statistic.end   calls                     the state ends with
//	-----     --------               -------------   -----                     -------------------
//	open      end of the bucket, S   the same        enter without a lock      turning, SetCounters, Retire
//	                                                 if S is 0
//	turning   closedMark             has passed      wait for mu or the lock   the end of the turn
//	retired   closedMark             MaxInt64        get the zero Call         never, once Retire returned true
//
// End marks change only while the goroutine holds Statistic.mu and the locks of all stripes. These functions change
// them: advance (open to turning), openBucket (turning to open), [Statistic.SetCounters] (open with another S),
// [Statistic.Retire] (open to retired; if a call has entered meanwhile, Retire restores the old end mark), and grow (a
// new stripe gets the end mark of the first stripe). [Statistic.Init] sets the first end mark before other goroutines
// can see the statistic.
//
// A call that enters without a lock, and a goroutine that changes the end mark, both use two atomic words: the end mark
// and the call word, which the next section describes. They access these two words in opposite order:
//
//	Enter                                  turn, SetCounters, Retire
//	-----                                  -------------------------
//	1. load the end mark                   1. store another end mark
//	2. add to the call word                2. load the call word
//	3. load the end mark                   3. decide by the call word
//
// All goroutines see atomic operations in the same order. Therefore the goroutine on the right sees the addition in its
// step 2, or Enter sees the new end mark in its step 3, or both. If Enter sees the new end mark, it calls
// reconcileEnter, which waits for the locks. If the statistic is then retired, reconcileEnter takes the call back.
// Otherwise the call stays counted: in the bucket that has ended if the turn has seen the addition, and in the next
// bucket if not. In both cases, reconcileEnter also adds the call to the counters.
//
// # The call word
//
// An entering call changes two sums with one atomic addition: the number of entries, and the sum of their stamps. The
// word to which it adds, the call word, therefore has two parts:
//
//	 63                                                   26 25                            0
//	+------------------------------------------------------+-------------------------------+
//	|  sum of the stamps of all entries, in ticks of       |  number of entries            |
//	|  4096 ns, each rounded up; 38 bits, wraps            |  26 bits, wraps               |
//	+------------------------------------------------------+-------------------------------+
//
//	n calls with the stamps t1 ... tn spend  n * end - (t1 + ... + tn)  until the end of the bucket
//
// Both parts wrap, so only differences of two values of the word are used. The number of entries is exact if fewer than
// 67 million calls enter through a stripe in a bucket. The sum of stamps gives the call-seconds of the bucket modulo 13
// days. The calls in flight at the start of the bucket spend its full length each, and are counted separately. Each
// entry adds call-seconds to the bucket, and each exit subtracts some. The result is exact if all entries and exits
// together change the call-seconds by less than six days, up or down. Even a million calls that all enter at the
// beginning of a bucket of half a second add less than six days.
//
// The stamps in the word are rounded. When a call exits, the exact stamp of its entry is still available, and the exit
// corrects the rounding.
//
// # Call-seconds
//
// A call spends exactly the time from the stamp of its entry to the stamp of its exit, even if buckets turn in between.
// Over all seconds, the call-seconds therefore equal the sum of the response times (Little's law). In this sum the
// response time of a batch counts once, because a batch is one call in flight. RTSum, in contrast, contains the
// response time of a batch once for each of its n completions. While a call is in flight, the time counted for it is
// rounded by up to 4.1 µs.
//
// Sealed seconds are final, so an event with a late stamp corrects the open second. A late entry adds the time that the
// call spent before the open second. A late exit subtracts the time that sealed seconds counted after the call had
// ended. For example, a call with the exit stamp 9.9 s is recorded at 10.2 s. Second 9 is sealed and has counted the
// call until 10.0 s. This is 0.1 s too much, so second 10 gets 0.1 s less. If the call-seconds of second 10 would
// become negative, second 10 reports 0, and the next second gets the rest of the correction.
//
// In each skipped second, every call in flight spends exactly one second. If a skipped second was slewed, it was really
// up to 1 % longer or shorter. The next recorded second contains this difference. A call that borrowed from a skipped
// bucket is an exception: it also gets the difference of the skipped seconds before its bucket, although it was not in
// flight then. Its call-seconds are off by this part of the difference.
//
// # Maximum in flight
//
// With one stripe the maximum is exact. Between two exits the number of calls in flight only grows. It is therefore
// enough to compare this number with the maximum before each exit and at the end of the second. The maxima of several
// stripes or leaves belong to different instants. In that case the record has two bounds: the sum of the maxima is the
// upper bound, and minConcurrency describes the lower bound.
//
// While a statistic has counters, calls enter through the first stripe, and the maximum is exact. There are two
// exceptions. Calls that entered through other stripes before the counters were set may still be in flight. A call that
// enters during a turn cannot see whether the statistic has counters, so it may enter through another stripe.
//
// A call is in flight from an instant within Enter to an instant within Exit. A program that counts its own calls, from
// the end of Enter to the start of Exit, may find a maximum below the lower bound of the record: if a goroutine loses
// its processor within Enter or Exit, its call is in flight for the record, but not for the program.
//
// # Locks
//
// Locks are taken in this order: View.mu, Statistic.mu, the first stripe, the other stripes in the order of their list,
// the lock of the timeline. Enter, Exit, Hold and Backdate usually lock at most one stripe and nothing else. They may
// also have to turn the statistic, to add stripes, or to finish an entry during which the end mark has changed. In
// these cases they first unlock the stripe, and then take Statistic.mu. Loans and Resume always take Statistic.mu
// first.
//
// The fields after Statistic.mu change only while mu and the locks of all stripes are held. To read them, mu or the
// lock of one stripe is enough. Two parts of the history are exceptions, because mu alone guards them: the position of
// the previous lookup in each store of records, and the cached peak. Every lookup changes the position. Readers of
// sealed seconds therefore take mu. Once they have turned the statistic, they hold no stripe lock, and delay only
// goroutines that need mu. Readers of the open bucket take all locks.
//
// Consistency: a sealed second is exact. A reader of the open bucket sees each completion as a whole. For each stripe,
// it sees the passes and the calls in flight of one instant. Calls enter without a lock, also while the reader goes
// from stripe to stripe, so the reader may see a call and miss an earlier call that entered through another stripe.
//
// # Costs
//
// A call costs one atomic addition to enter, and one lock, almost never contended, to exit. A reader of a window holds
// the locks of all stripes while it adds up their counts.
//
// A statistic begins with one stripe. If goroutines find the lock of a stripe taken at least 32 times in a bucket, and
// in at least one of 256 calls, the statistic gets more stripes. In addition to the first stripe, it gets up to twice
// the number of processors, rounded up to a power of two, and at most sixteen.
//
// A turn costs less than a microsecond for each second with events, and nothing for idle seconds. With all stripes, it
// costs two or three microseconds. With many buckets in a second, it costs more.
//
// A statistic takes 256 bytes on 64-bit platforms until something is counted. Each further stripe takes 192 bytes. The
// response times of the open second take a page of 64 bytes for each group of 32 neighboring cells with counts.
//
// # Caveats
//
// Statistics are lost when the process ends, unless an exporter has read them. Counts and sums of response times stop
// at the largest int64 instead of wrapping. A sum of response times reaches it after 292 years of response time.
//
// One goroutine turns a bucket for all other goroutines, twice a second by default. If the operating system preempts
// this goroutine during the turn, writers of the resource wait for it.
//
// For several stripes or leaves, the record contains two bounds of the maximum in flight instead of its exact value.
// The lower bound uses the average in flight. If a goroutine loses its processor twice within Enter, for a second each
// time, this average may exceed the true maximum.
//
// A stripe can have up to 67 million calls in flight, and as many entries in one bucket. Each call that is in flight at
// the start of a bucket spends the full length of the bucket. All entries and exits within the bucket together must
// change its call-seconds by less than six days, up or down.
package node
