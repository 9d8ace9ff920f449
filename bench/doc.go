// Package bench measures windowstat beside the libraries that people use today, and beside the simple ways to count a
// window, under one load.
//
// The load is one finished request: it passed, was in flight, and completed after a response time that two readings
// of the clock gave. A [Rival] is a library behind an adapter, a file of its own that says what the library cannot
// record of that; the bare costs, two clock readings and one atomic addition, are rivals as well. All are called in
// the same way, through one func value, so that the overhead is the same for all.
//
// [Limiters] do the same for a call that a limit lets through. What windowstat does for more than that, through a
// context, for several origins, for many resources, has no rival, and is measured beside a call by handle.
//
// [FixedWindow], [SentinelRing], [SubWindowList] and [SecondMap] are the ways to count that the literature offers,
// each in its simplest honest form. [Subjects] puts them through the two situations that windows get wrong, and
// package hammer counts what is lost when a bucket turns.
//
// The metric log is searched beside sentinel-golang's searcher, which reads the same files.
//
// [Pages], [RegistryPages] and [SecondsPages] show a [Service] to Prometheus, beside the ways that client_golang has for
// it, and [Storms] are what goes on while calls are recorded. Program viewers has people look at the live page.
//
// BenchmarkAttached is a service with every way out at once, beside one without.
//
// BenchmarkScale does what windowstat does for all of a Service, for services of 100 to 100,000 resources and for a resource
// of up to 1,000 origins, from which the report works out how each cost grows. A [Receiver] is where pushes go.
//
// Command replay has an access log replayed beside goaccess.
//
//	make -C bench results
//	make -C bench results BASE=v1.2.3
//	make -C bench print BENCH=Scale BASE=main
//
// The first runs everything, rivals in turn, and writes RESULTS.md with program report; the Makefile has the parts of it. With
// BASE, a revision, the benchmarks of then run in turn with these, and the report says beside each target what there was before,
// if it has a benchmark of the same name.
package bench
