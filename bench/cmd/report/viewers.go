package main

import "strings"

// viewers writes the cost of viewers of the live page.
func (p *page) viewers() {
	names := p.s.under("Live")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Viewers of the live page\n\n")
	p.printf("Viewers in a process of their own, each with a stream, of a service that is called ten times a second for each resource. ")
	p.printf("The processor is what the service's process uses for them, and what it uses without them. ")
	p.printf("Calls take turns with those of a collector that nobody looks at, in the same process.\n\n")
	p.header("llrrrrrrr", "viewers", "stream", "first load, bytes", "bytes a second to each", "% of a core", "without", "a call, ns", "without, ns", "ratio")
	for _, name := range names {
		full := "Live/" + name
		part := strings.Split(name, "/")
		p.row(strings.ReplaceAll(part[2], "-", " ")+" of "+strings.ReplaceAll(part[1], "-", " "), part[0],
			p.plain(full, "first-B"), p.plain(full, "B/s/viewer"), p.plain(full, "core-percent"), p.plain(full, "other-core-percent"),
			p.plain(full, "ns/op"), p.plain(full, "other-ns/op"), p.plain(full, beside))
	}
}
