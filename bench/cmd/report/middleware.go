package main

// middleware writes the cost of a request through the net/http middleware.
func (p *page) middleware() {
	names := p.s.under("Middleware")
	if len(names) == 0 {
		return
	}
	p.printf("\n## One request through middleware\n\n" +
		"Nanoseconds per request that a ServeMux routes, in the process. The row bare has no middleware. " +
		"× is the time divided by httpstat.Route's time.\n\n")
	p.header("lrrrr", "", "serial", "×", "allocations", "bytes")
	for _, name := range names {
		times := ""
		if x, ok := p.s.ratio("Middleware/"+name, "Middleware/windowstat-route", "ns/op"); ok &&
			name != "windowstat-route" {
			times = amount(x)
		}
		p.row(name, p.cell("Middleware/"+name, "ns/op"), times, p.plain("Middleware/"+name, "allocs/op"),
			p.plain("Middleware/"+name, "B/op"))
	}
}
