// Package bench compares windowstat with popular libraries, and with the simple algorithms for counting in a window,
// under one load.
//
// The load is one finished request: a pass, a call in flight, and a completion after a response time that two readings
// of the clock measured. A [Rival] is a library behind an adapter. Each adapter has its own file, which states the
// parts of a request that the library cannot record. The bare costs, two clock readings and one atomic addition, are
// rivals, too. All rivals are called through one func value, so the overhead is the same for all.
//
// [Limiters] do the same for a call that a limit admits. Some features of windowstat have no rival: calls through a
// context, of several origins, and to many resources. They are compared with a call through a handle.
//
// [FixedWindow], [SentinelRing], [SubWindowList] and [SecondMap] are the algorithms of the literature, each in its
// simplest fair form. [Subjects] runs them in the two situations in which windows are wrong. Package hammer counts the
// calls that are lost when a bucket turns.
//
// The search in the metric log is compared with sentinel-golang's searcher, which reads the same files.
//
// [Pages], [RegistryPages] and [SecondsPages] export a [Service] to Prometheus, and are compared with the ways that
// client_golang has for it. [Storms] are concurrent work while calls are recorded. Command viewers simulates viewers of
// the live page.
//
// BenchmarkAttached compares a service that has every exporter with a service that has none.
//
// BenchmarkScale measures the work that windowstat does for all of a Service, for services of 100 to 100,000 resources
// and for a resource with up to 1,000 origins. The report computes from these how each cost grows. A [Receiver] accepts
// pushes.
//
// Command replay compares windowstat with goaccess in the replay of an access log.
//
//	make -C bench results
//	make -C bench results BASE=v1.2.3
//	make -C bench print BENCH=Scale BASE=main
//
// The first command runs everything, with the rivals in turn, and writes RESULTS.md with command report; the Makefile
// has targets for its parts. If BASE names a revision, the benchmarks of the revision run in turn with the current
// ones. The report then shows, next to each target, the earlier value, provided that the revision has a benchmark of
// the same name.
package bench
