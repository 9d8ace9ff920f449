package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Recorder records calls to the resources of one rival.
type Recorder struct {
	// Call records one finished request to resource i. Its response time is the difference of two readings of the clock
	// in Call.
	Call func(i int)
	// Took records one finished request to resource i that took rt. It is nil if the rival does not accept a response
	// time.
	Took func(i int, rt time.Duration)
	// Warm reports that a resource must be in use past the end of a second before it has allocated all memory that a
	// call needs.
	Warm bool
	// Keep holds the parts of a service that Call does not need, that is, the registry.
	Keep any
	// Close releases the process-wide state that New changed, or is nil.
	Close func()
}

// Rival is a way to record calls.
type Rival struct {
	// Name identifies the rival in results: the library and the API that is used.
	Name string
	// Lacks lists the parts of a request, and of windowstat's statistics, that the rival does not record.
	Lacks string
	// New creates a resource for each name.
	New func(names []string) (Recorder, error)
}

// Rivals returns all ways to record calls: windowstat, bare costs, libraries, and the simple windows.
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

// Picks returns many random indexes below n, the same indexes each time. Their number is a power of two.
func Picks(n int) []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	picks := make([]int32, 1<<16)
	for i := range picks {
		picks[i] = random.Int32N(int32(n))
	}
	return picks
}

// ResponseTimes returns n response times with a log-normal distribution around 20 ms, the same values each time: half
// of them are between 14 and 28 ms, one in a hundred is above 64 ms.
func ResponseTimes(n int) []time.Duration {
	random := rand.New(rand.NewPCG(3, 4))
	rts := make([]time.Duration, n)
	for i := range rts {
		rts[i] = time.Duration(20e6 * math.Exp(0.5*random.NormFloat64()))
	}
	return rts
}

var anchor = time.Now()

// Now reads the monotonic clock, the cheapest clock. Rivals that do not read a clock themselves are timed with it, as
// windowstat times itself.
func Now() time.Duration { return time.Since(anchor) }
