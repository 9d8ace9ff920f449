// Package sentinelstat counts the calls of a service that uses sentinel-golang: a statistics slot on package collector.
//
//	import sentinel "github.com/alibaba/sentinel-golang/api"
//
//	c, err := collector.New(collector.Options{})
//	…
//	sentinel.GlobalSlotChain().AddStatSlot(sentinelstat.NewSlot(c)) // once, before the first entry
//
// From then on everything that goes through sentinel.Entry is counted, by whatever adapter. For the calls of a chain of
// one's own alone:
//
//	chain := sentinel.BuildDefaultSlotChain()
//	chain.AddStatSlot(sentinelstat.NewSlot(c))
//	…
//	e, blocked := sentinel.Entry("checkout", sentinel.WithSlotChain(chain))
//
// Sentinel's own statistics stay, because its rules decide by them: this slot is one more. It decides nothing. Sentinel
// has admitted a call when it hears of it, so limits of the Collector do not refuse it, but it uses them up.
//
// # What is counted
//
// A call passes, and is in flight, when Sentinel admits it, and completes at its first Exit. Its response time counts
// from the beginning of sentinel.Entry, so what a throttling rule made it wait is a part of it. It is an exception if
// its entry has an error by then, from sentinel.TraceError for one, that is an exception by the Collector's Options. A
// call that a rule refused is a block, whose reason is the kind of the rule, in Sentinel's words, and which one it is:
// its ID, or what it is for where that is not the resource. "FlowControl", "Isolation two at a time", "System
// inboundQPS". A batch of n is n passes, or n blocks, and n completions, but one in flight; a batch of 0 is one call. A
// completion has no code, as Sentinel knows none.
//
// Each call counts once, and concurrency is never negative, also where other slots panic. Sentinel logs such a panic
// and lets the call go on, with the panic as its error. If a slot panicked before this one heard of the call, the call
// passes when it completes, as an exception. Once a call is counted as a pass or a block it stays one; this is the first
// of the statistics slots, so that it hears of calls before those can panic. What panics in the functions of the
// Collector's Options ends here, in Sentinel's log: Sentinel's own statistics come after this slot.
//
// # Caveats
//
// This is a module of its own, so that importing package collector alone does not bring Sentinel. It is made for
// sentinel-golang v1.0.4.
//
// A call costs what Sentinel costs, some 1.5 to 2 µs, and about 0.5 µs and two allocations of 64 bytes together more; one that
// is blocked costs one allocation of 24 bytes more.
//
// Sentinel's entries know no context.Context, no origin and no entrance. So there is no call tree, and an entry within
// another is one more call that enters the process, by [collector.DefaultEntrance]: the views of the process and of that
// entrance count entries, not requests.
//
// Sentinel's clock has milliseconds: a wait of up to 2 ms before a call is admitted may not be seen, and a longer one
// may be off by 1 ms. Apart from that response times are exact. The wait is measured with the machine's clock even where
// the Collector has another, by its [collector.Options].
//
// Sentinel uses its contexts again: an error that is set on an entry after its Exit, by sentinel.TraceError or by a
// second Exit, may hit another call. The slot removes it where it was there before that call began.
//
// An entry that is never exited stays in flight for ever. So does one with an exit handler (WhenExit) that panics, or
// with a slot of order 0 that was added before this one and panics at the end: Sentinel does not tell of the end then.
package sentinelstat
