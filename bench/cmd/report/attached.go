package main

import "strings"

// size writes the size of the command as released.
func (p *page) size() {
	if v, ok := p.s.median("Size/windowstat", "B"); ok {
		p.printf("\nThe release binary of the command for this machine has %s MB.\n", amount(v/1e6))
	}
}

// attached writes the cost of all exporters together for a service.
func (p *page) attached() {
	names := p.s.under("Attached")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Everything attached\n\n")
	p.printf("Usage of a service whose resources are each called ten times a second, without exporters and with all " +
		"of them: both pages scraped every 15 s, the metric log, a viewer of the live page, a push of every second, " +
		"and the sampler. ")
	p.printf("The clients run in a separate process on the same machine. Goroutines make a part of the calls each " +
		"millisecond; late is the delay of their wake-ups. A call is Enter or Exit.\n\n")
	p.header("llrrrrrrr", "service", "", "% of a core", "late, p50, ms", "late, p99, ms", "a call, p99.99, ns",
		"garbage, MB/s", "allocations a second", "peak heap, MiB")
	for _, name := range names {
		for _, way := range []struct{ name, prefix string }{{"bare", "bare-"}, {"everything", ""}} {
			unit := func(u string) string { return p.plain("Attached/"+name, way.prefix+u) }
			scaled := func(u string) string {
				v, _ := p.s.median("Attached/"+name, way.prefix+u)
				return amount(v / 1e6)
			}
			p.row(strings.ReplaceAll(name, "-", " "), way.name, unit("core-percent"),
				scaled("late-p50-ns"), scaled("late-p99-ns"),
				unit("call-p99.99-ns"), scaled("B/s"), unit("allocs/s"), unit("peak-MiB"))
		}
	}
}
