package main

import "fmt"

// replay writes a table of the cost of replaying an access log.
func (p *page) replay() {
	names := p.s.under("Replay")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Replaying an access log\n\nA million lines, replayed once. windowstat also writes a metric log of " +
		"every second.\n\n")
	p.header("lrrrr", "", "seconds", "processor seconds", "lines a second", "most memory, MiB")
	for _, name := range names {
		full := "Replay/" + name
		p.row(name, p.seconds(full, "ns/op"), p.seconds(full, "cpu-ns/op"),
			p.plain(full, "lines/s"), p.plain(full, "peak-MiB"))
	}
}

// seconds returns the result of a benchmark in seconds, with its spread.
func (p *page) seconds(name, unit string) string {
	v, _ := p.s.median(name, unit)
	return fmt.Sprintf("%s ±%.0f%%", amount(v/1e9), 100*p.s.spread(name, unit))
}
