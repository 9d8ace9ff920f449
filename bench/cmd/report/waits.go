package main

import (
	"slices"
	"strings"
)

// waits writes how long callers wait while an operation works on a whole service.
func (p *page) waits() {
	names := p.s.under("Waits")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Waiting for what is done for all\n\n")
	p.printf("Nanoseconds that callers wait who call by a handle, call by name, or register a new name, while an " +
		"operation works on 10,000 resources of five origins each. ")
	p.printf("Constant work uses a processor and no part of windowstat. The longest wait is the median of the " +
		"longest waits of the runs.\n\n")
	p.header("llrrr", "while", "who", "p50", "p99.9", "longest")
	for _, name := range names {
		full := "Waits/" + name
		for _, who := range callers {
			if _, ok := p.s.median(full, who+"-"+longest); ok {
				p.row(strings.ReplaceAll(name, "-", " "), who, p.cell(full, who+"-p50-ns"),
					p.cell(full, who+"-p99.9-ns"), p.cell(full, who+"-"+longest))
			}
		}
	}
}

// callers lists the callers whose waits are measured.
var callers = []string{"handle", "name", "new"}

// shared writes the cost of a resource that several goroutines call concurrently.
func (p *page) shared() {
	pairs, hot := p.s.under("Pair"), p.s.under("Hot")
	if len(pairs)+len(hot) == 0 {
		return
	}
	p.printf("\n## Goroutines that share a resource\n")
	if len(pairs) > 0 {
		p.printf("\nNanoseconds per call while two goroutines call one resource concurrently: the fastest, the " +
			"median and the slowest of many resources, each with its own two goroutines.\n\n")
		p.header("lrrrlrrr", "", "fastest", "median", "slowest", "beside", "fastest", "median", "slowest")
		for _, name := range pairs {
			ours, other, _ := strings.Cut(name, "/")
			full := "Pair/" + name
			p.row(ours, p.plain(full, "min-ns"), p.plain(full, "ns/op"), p.plain(full, longest),
				other, p.plain(full, "other-min-ns"), p.plain(full, "other-ns/op"), p.plain(full, "other-max-ns"))
		}
	}
	if slices.Contains(hot, "memory") {
		p.printf("\nA resource that 64 goroutines call concurrently, with GOMAXPROCS at 64, takes %s bytes.\n",
			p.plain("Hot/memory", "B/resource"))
	}
	if slices.Contains(hot, "turn") {
		p.printf("\nOther calls wait for the call that turns the bucket of this resource. It takes %s ns in the "+
			"median, %s ns or more once in a thousand, and %s ns at most.\n",
			p.plain("Hot/turn", "p50-ns"), p.plain("Hot/turn", "p99.9-ns"), p.plain("Hot/turn", longest))
	}
}

// away writes the cost of catching up after an absence, and the cost of the first viewer of the live page.
func (p *page) away() {
	behind, viewers := p.s.under("LogBehind"), p.s.under("FirstViewer")
	if len(behind)+len(viewers) == 0 {
		return
	}
	p.printf("\n## Catching up\n")
	if len(behind) > 0 {
		p.printf("\nNanoseconds per row of a metric log of 100 resources that catches up after the given absence, " +
			"and per second of a resource that is read from its history.\n\n")
		p.header("lrr", "behind", "row of the log", "second of the history")
		for _, name := range behind {
			p.row(name, p.cell("LogBehind/"+name, "ns/row"), p.cell("HistoryBehind/"+name, "ns/row"))
		}
	}
	if len(viewers) > 0 {
		p.printf("\nMilliseconds until the first viewer of the live page has the table, the three minutes that the " +
			"page shows at first, and ten minutes; and the longest wait of a hundred viewers that connect " +
			"concurrently.\n\n")
		p.header("lrrrrr", "", "the table", "three minutes", "ten minutes", "one of a hundred", "MB")
		for _, name := range viewers {
			p.row(strings.ReplaceAll(name, "-", " "), p.milliseconds("FirstViewer/"+name, "ns/op"),
				p.milliseconds("FirstViewer/"+name, "shown-ns"), p.milliseconds("FirstViewer/"+name, "whole-ns"),
				p.milliseconds("FirstViewer/"+name, "crowd-ns"), p.plain("FirstViewer/"+name, "MB/page"))
		}
	}
}
