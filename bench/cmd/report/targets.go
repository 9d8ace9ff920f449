package main

import (
	"math"
	"strings"
)

// target is a performance goal of windowstat.
type target struct {
	what    string
	ours    string // benchmark; a "/*" suffix means the sum of all its sub-benchmarks
	against string // rival's benchmark, the divisor of ours; empty if the figure itself counts
	// A key of parts if the benchmark itself compares two operations; "*" is a wildcard, and the highest match counts.
	unit string
	must float64
	aim  float64
}

// Units of benchmarks that compare two operations in turns: the ratio of the times, the ratio of the longest time to
// the other operation's time, and the ratio of the allocations.
const (
	beside            = "ratio"
	slowestBeside     = "slowest-ratio"
	besideAllocations = "allocs-ratio"
)

// longest is the unit of the maximum of many times.
const longest = "max-ns"

// parts maps the unit of a ratio to the units of its two figures.
var parts = map[string][2]string{
	beside:            {"ns/op", "other-ns/op"},
	slowestBeside:     {longest, "other-ns/op"},
	besideAllocations: {"own-allocs/op", "other-allocs/op"},
}

// list contains every target, in the order of RESULTS.md. If a rival can be used in two ways, the cheaper way counts.
// Times without a rival are in nanoseconds, unless stated otherwise.
var list = []target{
	{"call, serial: two clock readings", "Call/windowstat", "Call/two-clock-readings", "ns/op", 1.8, 1.5},
	{
		"call, serial: sentinel-golang Entry and Exit", "Call/windowstat",
		"Call/sentinel-golang-entry", "ns/op", 1. / 7, 1. / 10,
	},
	{
		"call, serial: sentinel-golang node record", "Call/windowstat",
		"Call/sentinel-golang-node", "ns/op", 1 / 2.5, 1 / 3.5,
	},
	// The bound was 1/4 until client_golang 1.24 made the lookup of labels faster.
	{
		"call, serial: client_golang WithLabelValues", "Call/windowstat",
		"Call/client_golang-classic-by-label", "ns/op", 1 / 3.1, 1. / 4,
	},
	{"call, serial: client_golang handles kept", "Call/windowstat", "Call/client_golang-classic", "ns/op", 1, 0.85},
	{"call, serial: VictoriaMetrics handles kept", "Call/windowstat", "Call/victoriametrics-le", "ns/op", 1.2, 1},
	{
		"call, parallel: two clock readings", "CallParallel/windowstat",
		"CallParallel/two-clock-readings", "ns/op", 1.8, 1.6,
	},
	{
		"call, parallel: client_golang handles kept", "CallParallel/windowstat",
		"CallParallel/client_golang-classic", "ns/op", 1. / 3, 1. / 5,
	},
	{
		"call, parallel: VictoriaMetrics handles kept", "CallParallel/windowstat",
		"CallParallel/victoriametrics-le", "ns/op", 1 / 1.5, 1 / 2.5,
	},
	{
		"call, parallel: sentinel-golang Entry and Exit", "CallParallel/windowstat",
		"CallParallel/sentinel-golang-entry", "ns/op", 1. / 12, 1. / 20,
	},
	{
		"call, two goroutines on one resource, of many: sentinel-golang Entry and Exit",
		"Pair/windowstat/sentinel-golang-entry", "", beside, 1. / 18, 1. / 20,
	},
	{
		"call, two goroutines on one resource, the slowest: sentinel-golang Entry and Exit",
		"Pair/windowstat/sentinel-golang-entry", "", slowestBeside, 1. / 18, 1. / 20,
	},
	{
		"call, two goroutines on one resource, of many: VictoriaMetrics handles kept",
		"Pair/windowstat/victoriametrics-le", "", beside, 0.45, 0.4,
	},
	{
		"call, two goroutines on one resource, the slowest: VictoriaMetrics handles kept",
		"Pair/windowstat/victoriametrics-le", "", slowestBeside, 0.45, 0.4,
	},
	{
		"call, 10,000 resources, serial: client_golang handles kept", "Call10000/windowstat",
		"Call10000/client_golang-classic", "ns/op", 0.8, 0.6,
	},
	{
		"call, 10,000 resources, parallel: client_golang handles kept", "Call10000Parallel/windowstat",
		"Call10000Parallel/client_golang-classic", "ns/op", 0.8, 0.6,
	},
	{"allocations, Enter and Exit", "Call/windowstat", "", "allocs/op", 0, 0},
	{"allocations, Do", "Call/windowstat-do", "", "allocs/op", 0, 0},
	{"allocations, reading QPS", "Read/qps/windowstat", "", "allocs/op", 0, 0},
	{"reading QPS: sentinel-golang", "Read/qps/windowstat", "Read/qps/sentinel-golang-node", "ns/op", 1. / 3, 1. / 8},
	{"memory, windows full", "Memory/windowstat-full", "", "B/resource", 6144, 5120},
	{
		"memory, windows and a history of ten minutes full", "Memory/windowstat-ten-minutes", "",
		"B/resource", 15_360, 12_288,
	},
	{"memory, after 64 goroutines on 64 processors", "Hot/memory", "", "B/resource", 12_288, 12_288},
	{"memory, registered and not used", "Memory/windowstat-unused", "", "B/resource", 1024, 512},
	{"memory, 10,000 resources of 4 origins each, windows full, MiB", "Memory40000/windowstat", "", "MiB", 400, 400},
	{"memory, of the same, what it grows in another minute, MiB", "Memory40000/windowstat", "", "grown-MiB", 4, 0},
	{"call through a context: by handle", "Beside/context/handle", "", beside, 2.5, 2.5},
	{"call through a context, nested: by handle", "Beside/context-nested/handle", "", beside, 2.5, 2.5},
	{"allocations, Enter and Exit through a context", "Call/windowstat-context", "", "allocs/op", 2, 2},
	{"allocations, Enter and Exit through a context, nested", "Call/windowstat-context-nested", "", "allocs/op", 2, 2},
	{
		"request through httpstat.Route: the context path, and the request's copy",
		"MiddlewareBeside/route/context-and-request", "", beside, 1.5, 1.25,
	},
	{
		"request through httpstat.Route and a mux: promhttp's three", "Middleware/windowstat-route",
		"Middleware/promhttp", "ns/op", 1, 0.75,
	},
	{
		"request through httpstat.Route and a mux: otelhttp", "Middleware/windowstat-route",
		"Middleware/otelhttp", "ns/op", 1. / 2, 1. / 4,
	},
	{
		"allocations, request through httpstat.Route and a mux, which makes one of them",
		"Middleware/windowstat-route", "", "allocs/op", 3, 3,
	},
	{"call with a limit on QPS that is not reached: by handle, without", "Beside/limit/handle", "", beside, 2, 2},
	{
		"call with a limit on concurrency, 1 origin: by handle, without",
		"Beside/concurrency-of-1-origin/handle", "", beside, 2, 2,
	},
	{
		"call with a limit on concurrency, 10 origins: by handle, without",
		"Beside/concurrency-of-10-origins/handle", "", beside, 2, 2,
	},
	{
		"call with a limit on concurrency, 100 origins: by handle, without",
		"Beside/concurrency-of-100-origins/handle", "", beside, 2, 2,
	},
	{
		"call with a limit on concurrency, 1,000 origins: by handle, without",
		"Beside/concurrency-of-1000-origins/handle", "", beside, 2, 2,
	},
	{"reading QPS of 100 leaves: of one", "Beside/qps-of-100-leaves/qps-of-one", "", beside, 150, 150},
	{"reading the window of 100 leaves: of one", "Beside/window-of-100-leaves/window-of-one", "", beside, 150, 150},
	{
		"registering the 10,000th resource by handle: the 100th",
		"Register/handle-10000th/handle-100th", "", beside, 3, 3,
	},
	{
		"registering the 10,000th resource through a context: the 100th",
		"Register/context-10000th/context-100th", "", beside, 3, 3,
	},
	{"longest Seal while 50,000 leaves are looked at, none of them idle", "Sweep/50000-kept", "", longest, 10e6, 10e6},
	{"longest Seal while 50,000 leaves are retired", "Sweep/50000-retired", "", longest, 10e6, 10e6},
	{
		"longest wait of others while 1,000 patterns are set as limits of 10,000 resources",
		"Waits/set-limits", "", "*-" + longest, 10e6, 10e6,
	},
	{"longest wait of others while 50,000 leaves are retired", "Waits/retirement", "", "*-" + longest, 10e6, 10e6},
	{"page of 10,000 resources, text: client_golang", "Page/text/client_golang", "", beside, 1. / 14, 1. / 20},
	{
		"page of 10,000 resources, OpenMetrics: client_golang", "Page/openmetrics/client_golang",
		"", beside, 1. / 14, 1. / 20,
	},
	{
		"allocations, page of 10,000 resources, text: client_golang", "Page/text/client_golang", "",
		besideAllocations, 1. / 10, 1. / 20,
	},
	{
		"allocations, page of 10,000 resources, OpenMetrics: client_golang", "Page/openmetrics/client_golang", "",
		besideAllocations, 1. / 10, 1. / 20,
	},
	{"page of 10,000 resources, in a registry: const metrics", "Registry/text/const-metrics", "", beside, 0.8, 0.8},
	{
		"page of 15 seconds of 1,000 resources: const metrics", "SecondsPage/text/const-metrics",
		"", beside, 1. / 15, 1. / 20,
	},
	{
		"readings of the clock for a page of seconds by window, which seals by it",
		"Scrape/seconds/window", "", "readings", 1, 1,
	},
	{"a second of 10,000 resources to the metric log", "LogSecond", "", "ns/op", 20e6, 10e6},
	{"allocations, a second of 10,000 resources to the metric log", "LogSecond", "", "own-allocs/op", 100, 100},
	{"metric log that is 60 s behind, a row", "LogBehind/60s", "", "ns/row", 200, 200},
	{"metric log that is 900 s behind, a row", "LogBehind/900s", "", "ns/row", 200, 200},
	{"metric log that is 3,500 s behind, a row", "LogBehind/3500s", "", "ns/row", 200, 200},
	{"metric log that is 3,500 s behind, a row: 60 s", "LogBehind/3500s", "LogBehind/60s", "ns/row", 1.25, 1.1},
	{"reading the history, 3,500 s, a second: 60 s", "HistoryBehind/3500s", "HistoryBehind/60s", "ns/row", 1.25, 1.1},
	{
		"finding five minutes in six files of the metric log, all resources: sentinel-golang",
		"Search/all-resources/sentinel-golang", "", beside, 1. / 20, 1. / 20,
	},
	{
		"finding five minutes in six files of the metric log, one resource: sentinel-golang",
		"Search/one-resource/sentinel-golang", "", beside, 1. / 20, 1. / 20,
	},
	{"memory, history, of a resource and busy second", "History/windowstat", "", "B/second", 64, 64},
	{"live page of 10,000 resources, first viewer", "FirstViewer/10000-resources", "", "shown-ns", 250e6, 250e6},
	{"live page, first load, bytes", viewed, "", "first-B", 100_000, 100_000},
	{"live page of 1,000 resources, bytes a second to a viewer", viewed, "", "B/s/viewer", 50_000, 50_000},
	{"live page of 1,000 resources, percent of a core for 100 viewers", viewed, "", "core-percent", 10, 10},
	{"call while 200 look: while nobody does", viewed, "", beside, 1.1, 1.05},
	{
		"replay of an access log, processor time: goaccess", "Replay/windowstat", "Replay/goaccess",
		"cpu-ns/op", 1. / 9, 1. / 12,
	},
	{"replay of an access log, time: goaccess", "Replay/windowstat", "Replay/goaccess", "ns/op", 1. / 9, 1. / 12},
	{"events lost or counted twice under the hammer", "Lost/windowstat/*", "", "lost", 0, 0},
	{"seconds with a wrong count under the hammer", "Lost/windowstat/*", "", "wrong-turns", 0, 0},
}

// reasons explains missed targets; the key is the name of the target. The report does not show the reason of a target
// that is met.
var reasons = map[string]string{
	"replay of an access log, processor time: goaccess": inReplay,
	"replay of an access log, time: goaccess":           inReplay,
	"call, serial: client_golang WithLabelValues": "two readings of the " +
		"clock are two thirds of windowstat's time and a fifth of the rival's: the ratio is at the bound, and " +
		"crosses it from run to run",
	"call, two goroutines on one resource, of many: sentinel-golang Entry and Exit":     byProcessor,
	"call, two goroutines on one resource, the slowest: sentinel-golang Entry and Exit": byProcessor,
	"page of 10,000 resources, OpenMetrics: client_golang": "client_golang's page " +
		"takes from 295 to 385 ms, by the processor, and windowstat's from 22 to 23",
	"memory, windows and a history of ten minutes full": "600 busy seconds are " +
		"10,863 bytes packed, for which the allocator gives 12,288",
	"longest wait of others while 1,000 patterns are set as limits of 10,000 resources": onProcessors,
	"longest wait of others while 50,000 leaves are retired":                            onProcessors,
	"page of 10,000 resources, in a registry: const metrics": "the registry " +
		"makes, checks, sorts and encodes the same messages for both, which is most of the time",
	"metric log that is 60 s behind, a row": "what does not depend on " +
		"the rows, system calls and memory that is used for the first time, is shared by 6,000 rows only",
	"finding five minutes in six files of the metric log, all resources: sentinel-golang": "both read and parse all " +
		"rows of the five minutes, which is what remains when they are found",
}

// inReplay lists the most expensive parts of a replay.
const inReplay = "naming lines of many paths is a quarter of the time, logging each second another one, reading the " +
	"lines a sixth"

// byProcessor explains why the ratio to a rival with lock contention differs between machines.
const byProcessor = "two goroutines of sentinel-golang take from 405 to 756 ns, by the processor; an 18th of the " +
	"former is what two readings of the clock take"

// onProcessors explains why callers wait longer than for any lock.
const onProcessors = "constant work, which touches nothing of windowstat, makes the same callers wait for two " +
	"processors as long, see below"

// viewed is the benchmark that command viewers runs by default.
const viewed = "Live/gzip/1000-resources/100-viewers"

// verdict is the result of a target.
type verdict struct {
	ours, against float64 // medians; against is NaN if nothing is compared
	value         float64 // compared with must and aim
	measured      bool
	word          string
}

const miss = "**missed**"

func (t target) judge(s *samples) verdict {
	v := verdict{against: math.NaN()}
	if group, all := strings.CutSuffix(t.ours, "/*"); all {
		for _, name := range s.under(group) {
			for _, x := range s.values[group+"/"+name][t.unit] {
				v.ours += math.Abs(x)
				v.measured = true
			}
		}
	} else if suffix, any := strings.CutPrefix(t.unit, "*"); any {
		for unit := range s.values[t.ours] {
			if strings.HasSuffix(unit, suffix) {
				x, _ := s.median(t.ours, unit)
				v.ours, v.measured = max(v.ours, x), true
			}
		}
	} else {
		v.ours, v.measured = s.median(t.ours, t.unit)
	}
	v.value = v.ours
	of, turns := parts[t.unit]
	switch {
	case turns:
		v.ours, _ = s.median(t.ours, of[0])
		v.against, _ = s.median(t.ours, of[1])
	case t.against != "":
		v.against, _ = s.median(t.against, t.unit)
		v.value, v.measured = s.ratio(t.ours, t.against, t.unit)
	}
	switch {
	case !v.measured:
		v.word = "not measured"
	case v.value <= t.aim:
		v.word = "aim met"
	case v.value <= t.must:
		v.word = "must met"
	default:
		v.word = miss
		if why := reasons[t.what]; why != "" {
			v.word += ": " + why
		}
	}
	return v
}
