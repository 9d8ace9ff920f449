package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/bench"
)

// pages writes a table of the cost of exporting statistics.
func (p *page) pages() {
	type way struct {
		group, what string
		list        []bench.Page
	}
	var rows [][]string
	for _, w := range []way{
		{"Page", "10,000 resources", bench.Pages()},
		{"Registry", "10,000 resources, in a registry of one's own", bench.RegistryPages()},
		{"SecondsPage", fmt.Sprintf("%d seconds of 1,000 resources", bench.SecondsShown), bench.SecondsPages()},
	} {
		for _, name := range p.s.under(w.group) {
			format, rival, _ := strings.Cut(name, "/")
			full := w.group + "/" + name
			i := slices.IndexFunc(w.list, func(r bench.Page) bool { return r.Name == rival })
			rows = append(rows, []string{
				w.what, format, p.milliseconds(full, "ns/op"), rival,
				p.milliseconds(full, "other-ns/op"), p.inTurn(full, beside),
				p.plain(full, "own-allocs/op"), p.plain(full, "other-allocs/op"), p.inTurn(full, besideAllocations),
				p.plain(full, "MB/page"), w.list[i].Lacks,
			})
		}
	}
	if rows == nil {
		return
	}
	p.printf("\n## Pages\n\nMilliseconds for one page without gzip, of a service that was in use in every second of " +
		"the last minute. The two pages take turns; less is better for windowstat. ")
	p.printf("client_golang has a separate metric for each series. The const metrics are created from the values of " +
		"the same windowstat collector.\n\n")
	p.header("llrlrrrrrrl", "page", "format", "ms", "beside", "ms", "ratio", "allocations", "beside",
		"ratio", "MB", "the other lacks")
	for _, r := range rows {
		p.row(r...)
	}
}

// milliseconds returns the result of a benchmark in milliseconds, with its spread.
func (p *page) milliseconds(name, unit string) string {
	v, _ := p.s.median(name, unit)
	return fmt.Sprintf("%s ±%.0f%%", amount(v/1e6), 100*p.s.spread(name, unit))
}

// inTurn returns the ratio of a benchmark that compares two operations in turns.
func (p *page) inTurn(name, unit string) string {
	v, _ := p.s.median(name, unit)
	return ratio(v)
}

// storm writes the time of recording while pages are requested.
func (p *page) storm() {
	names := p.s.under("Storm")
	if len(names) == 0 {
		return
	}
	p.printf("\n## Recording under a storm of scrapes\n\n")
	p.printf("Nanoseconds of Enter and Exit in one goroutine, one call after the other, including two clock readings " +
		"to time them, while four goroutines request pages without a break. The highest is the maximum of all runs. ")
	p.printf("Constant pages use the processors like windowstat's pages, but read no resource. The difference " +
		"between the two is the effect of scraping on recording. ")
	p.printf("The highest times belong to goroutines that were descheduled, because the goroutines outnumber the " +
		"processors.\n\n")
	p.header("llrrrrrrr", "resources", "pages", "p50", "p99", "p99.9", "p99.99", "highest",
		"calls a second", "pages a second")
	for _, name := range names {
		full := "Storm/" + name
		resources, pages, _ := strings.Cut(name, "/")
		cells := []string{resources, strings.ReplaceAll(pages, "-", " ")}
		for _, unit := range quantiles {
			cells = append(cells, p.cell(full, unit))
		}
		p.row(append(cells, amount(slices.Max(p.s.values[full]["max-ns"])), p.plain(full, "calls/s"),
			p.plain(full, "scrapes/s"))...)
	}
	p.printf("\nRatios of the times with windowstat's pages to the times with constant pages:\n\n")
	p.header("lrrrr", "resources", "p50", "p99", "p99.9", "p99.99")
	for _, name := range names {
		resources, ours := strings.CutSuffix(name, "/windowstat-pages")
		if !ours {
			continue
		}
		cells := []string{resources}
		for _, unit := range quantiles {
			v, _ := p.s.ratio("Storm/"+name, "Storm/"+resources+"/constant-pages", unit)
			cells = append(cells, ratio(v))
		}
		p.row(cells...)
	}
}

// quantiles lists the units of the quantiles in the report.
var quantiles = []string{"p50-ns", "p99-ns", "p99.9-ns", "p99.99-ns"}
