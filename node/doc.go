// Package node counts what a resource does, second by second, and never loses a count. It has two sides.
//
// # What users read
//
// A [MetricNode] is the record of one sealed second; [Columns] are its numbers, for whatever shows or writes whole records. A
// [Window] is what happened in the last second or minute, a [Snapshot] the totals and what is in flight. A [Histogram] is a
// distribution of response times, [Codes] are completions by how they were answered. All are plain values or copies; [Options]
// shape them. A [View] reads one or several statistics, by readings and indexes of a [leap.Timeline]; collector.View reads by the
// wall clock.
//
// # The engine's side
//
// A [Statistic] is Sentinel's StatisticNode: calls that passed, were blocked, completed, failed, how long they took
// and how many are in flight, in a window of a second, a window of a minute and in total. A [Call] is one call in flight, and a
// [Loan] one that waits for a bucket to come. A [Quota] is how many calls may pass in a second. A [Shape] is what statistics of a
// process share. Package collector drives these: they are exported for it, and there is no promise that what they have, nor what
// of View changes its statistics, stays as it is. Use package collector to count calls.
//
// Time is an argument: a [leap.Reading] of the timeline. One that the clock has not reached counts as the present. Only
// [Call.End] takes the reading itself. The position of a bucket on the timeline is a time.Duration since 1970, and is called line time.
//
// # Promises
//
// One stamp: an event is recorded with one reading, in one place, and all windows, totals and the histogram are
// derived from there. The completion of a call is one change; no reader sees half of it.
//
// Conservation: the sealed seconds and the open one add up to the totals at every moment, and the totals to the
// calls recorded.
//
// Finality: a second is sealed when the statistic has moved past it. From then on its record never changes. A caller
// that read the clock before the boundary and records after it lands in the second that is open then.
//
// Idle is zero: an idle window has no calls, an average of 0 and no minimum, never a made-up number.
//
// # Caveats
//
// Statistics are lost when the process ends; exporters take them out before. Counts and sums of response time stop at
// the largest int64 instead of wrapping, about 292 years of response time.
package node
