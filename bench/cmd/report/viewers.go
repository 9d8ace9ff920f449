package main

import "strings"

// viewers writes the cost of viewers of the live page.
func (p *page) viewers() {
	names := p.s.under("Live")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Viewers of the live page\n\n")
	p.printf("Viewers in a separate process, each with a stream, of a service whose resources are each called ten " +
		"times a second. ")
	p.printf("The processor usage is the usage of the service's process for the viewers, and its usage without them. ")
	p.printf("Calls take turns with calls of a collector without viewers, in the same process.\n\n")
	p.header("llrrrrrrr", "viewers", "stream", "first load, bytes", "bytes a second to each", "% of a core", "without",
		"a call, ns", "without, ns", "ratio")
	for _, name := range names {
		full := "Live/" + name
		part := strings.Split(name, "/")
		p.row(strings.ReplaceAll(part[2], "-", " ")+" of "+strings.ReplaceAll(part[1], "-", " "), part[0],
			p.plain(full, "first-B"), p.plain(full, "B/s/viewer"), p.plain(full, "core-percent"),
			p.plain(full, "other-core-percent"),
			p.plain(full, "ns/op"), p.plain(full, "other-ns/op"), p.plain(full, beside))
	}
}
