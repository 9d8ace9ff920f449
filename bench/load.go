package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Recorder records calls to the resources of one rival.
type Recorder struct {
	// Call records one finished request to resource i. Its response time is the difference of two readings of the
	// clock that Call makes.
	Call func(i int)
	// Took records one finished request to resource i that took rt. It is nil if the rival does not accept a response
	// time.
	Took func(i int, rt time.Duration)
	// Warm is set if a resource must be in use over the end of a second until it has all that a call needs.
	Warm bool
	// Keep holds the parts of a service that Call does not need, that is, the registry.
	Keep any
	// Close gives back what New took from the process; nil if that is nothing.
	Close func()
}

// Rival is a way to record calls.
type Rival struct {
	// Name identifies the rival in results: the library and the API that is used.
	Name string
	// Lacks lists the parts of a request, and of windowstat's statistics, that the rival does not record.
	Lacks string
	// New makes a resource for each name.
	New func(names []string) (Recorder, error)
}

// Rivals are all ways to record calls: windowstat, bare costs, libraries, and the simple windows.
func Rivals() []Rival {
	const (
		sentinel   = "histogram, longest response time, totals"
		exposition = "windows, blocks and exceptions, shortest and longest response time, most in flight"
		simple     = "blocks, exceptions, histogram, shortest and longest response time, totals"
	)
	return []Rival{
		{"windowstat", "", newWindowstat},
		{"windowstat-by-name", "", newWindowstatByName},
		{"windowstat-do", "", newWindowstatDo},
		{"windowstat-context", "", newWindowstatContext},
		{"windowstat-context-nested", "", newWindowstatNested},
		{"two-clock-readings", "everything", newClockReadings},
		{"one-atomic-add", "everything but a count", newAtomicAdd},
		{"sentinel-golang-node", sentinel + ", the clock readings for the response time", newSentinelNode},
		{"sentinel-golang-node-cached-clock", sentinel + ", times below a millisecond", newSentinelNodeCached},
		{"sentinel-golang-entry", sentinel, newSentinelEntry},
		{"sentinel-golang-entry-inbound", sentinel, newSentinelInbound},
		{"client_golang-classic", exposition, newClassic},
		{"client_golang-classic-by-label", exposition, newClassicByLabel},
		{"client_golang-native", exposition, newNative},
		{"client_golang-native-by-label", exposition, newNativeByLabel},
		{"victoriametrics-le", exposition, newVictoriaLE},
		{"victoriametrics-vmrange", exposition, newVictoriaRange},
		{"opentelemetry", "windows, blocks and exceptions, most in flight", newOpenTelemetry},
		{"hdrhistogram", "everything but response times", newHDR},
		{"go-zero", "passes, what is in flight, histogram, totals", newGoZero},
		{"xsync-counter", exposition + ", histogram", newXsync},
		{"fixed-window", simple, newFixedWindows},
		{"sentinel-ring", simple, newSentinelRings},
		{"sub-window-list", simple, newSubWindowLists},
		{"second-map", simple, newSecondMaps},
	}
}

// Names returns n names of resources.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("GET /resource/%05d", i)
	}
	return names
}

// Picks returns many of n indexes at random, the same ones each time. Their number is a power of two.
func Picks(n int) []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	picks := make([]int32, 1<<16)
	for i := range picks {
		picks[i] = random.Int32N(int32(n))
	}
	return picks
}

// ResponseTimes returns n response times that are spread log-normally around 20 ms, the same ones each time: half of
// them lie between 14 and 28 ms, one in a hundred above 64 ms.
func ResponseTimes(n int) []time.Duration {
	random := rand.New(rand.NewPCG(3, 4))
	rts := make([]time.Duration, n)
	for i := range rts {
		rts[i] = time.Duration(20e6 * math.Exp(0.5*random.NormFloat64()))
	}
	return rts
}

var anchor = time.Now()

// Now reads the monotonic clock, the cheapest clock there is. Rivals that do not read a clock of their own are timed
// with it, as windowstat times itself.
func Now() time.Duration { return time.Since(anchor) }
