package main

import (
	"fmt"
	"strings"

	"github.com/windowstat/windowstat/bench"
)

// ways lists the algorithms for counting in a window: the names of their benchmarks, and their errors.
var ways = []struct{ call, memory, read, accuracy, lost, wrong string }{
	{
		"windowstat", "windowstat-full", "windowstat", "windowstat", "windowstat/2x500ms",
		"the sliding window is as coarse as its buckets, and its last one is open",
	},
	{
		"", "", "", "windowstat-last-second", "windowstat/2x500ms",
		"the last complete second: up to two seconds old, and a burst may straddle two",
	},
	{
		"", "", "", "windowstat-peak", "windowstat/2x500ms",
		"the peak of the last complete second: as coarse as the buckets",
	},
	{
		"sentinel-golang-node", "sentinel-golang-node", "sentinel-golang-node",
		"sentinel-golang-node", "sentinel-golang/20x500ms",
		"loses what is added while a bucket turns",
	},
	{
		"sentinel-ring", "sentinel-ring", "sentinel-ring", "sentinel-ring", "sentinel-ring/2000x1ms",
		"loses what is added while a bucket turns, less of it because its reset is shorter",
	},
	{
		"fixed-window", "fixed-window", "fixed-window", "fixed-window", "fixed-window/1x1s",
		"forgets everything at its boundary",
	},
	{
		"sub-window-list", "sub-window-list", "sub-window-list", "sub-window-list", "sub-window-list/200x10ms",
		"one lock for all, an allocation for each turn; as coarse as its sub-windows",
	},
	{
		"second-map", "second-map", "second-map", "second-map", "second-map/60x1s",
		"one lock for all, allocates; whole seconds only, up to two seconds old",
	},
}

// windows compares the algorithms for counting in a window, and describes the errors of each.
func (p *page) windows() {
	p.printf("\n## Ways to count a window\n\n")
	p.printf("A burst is %s calls within %d ms. A window is read every 10 ms. The table has the highest reading for "+
		"the start of the burst that causes the largest error. ",
		amount(bench.BurstCalls), bench.BurstLength.Milliseconds())
	p.printf("A steady load is %s calls a second; the table has the lowest reading. ", amount(bench.SteadyRate))
	p.printf("Lost is the share of lost additions in parts per million. The additions are made as fast as possible, " +
		"to a ring of the given number of buckets.\n\n")
	p.header("lrrrrrrrl", "", "serial, ns", "parallel, ns", "bytes", "read, ns", "burst read as", "steady read as",
		"lost, ppm", "what it gets wrong")
	for _, w := range ways {
		p.row(w.accuracy, p.plain("Call/"+w.call, "ns/op"), p.plain("CallParallel/"+w.call, "ns/op"),
			p.plain("Memory/"+w.memory, "B/resource"), p.plain("Read/qps/"+w.read, "ns/op"),
			p.plain("Accuracy/"+w.accuracy, "burst-read"), p.plain("Accuracy/"+w.accuracy, "steady-read"),
			p.lostPPM(w.lost), w.wrong)
	}
}

// lostPPM returns the fraction of passes that a counter lost, in parts per million.
func (p *page) lostPPM(name string) string {
	for _, run := range p.s.under("Lost/" + name) {
		if strings.HasSuffix(run, "/pass") {
			_, shape, _ := strings.Cut(name, "/")
			return fmt.Sprintf("%s in %s", p.plain("Lost/"+name+"/"+run, "lost-ppm"), shape)
		}
	}
	return ""
}

// turns writes the results of the hammer.
func (p *page) turns() {
	names := p.s.under("Lost")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Lost when a bucket turns\n\n")
	p.printf("Writers add as fast as they can. Every closed bucket is compared with the additions to it. " +
		"windowstat's additions are whole calls, Enter and Exit, compared second by second; sentinel-golang's " +
		"additions are passes, compared bucket by bucket.\n\n")
	p.header("lrrrrrrr", "counter, buckets, writers, kind", "million added", "million a second", "lost", "ppm", "turns",
		"of them wrong", "worst turn lacks")
	for _, name := range names {
		full := "Lost/" + name
		cells := []string{strings.ReplaceAll(name, "/", ", ")}
		for _, unit := range []string{"Madd", "Madd/s", "lost", "lost-ppm", "turns", "wrong-turns", "worst-lost"} {
			cells = append(cells, p.plain(full, unit))
		}
		p.row(cells...)
	}
}
