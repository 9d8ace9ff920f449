package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/bench"
)

// page builds RESULTS.md.
type page struct {
	s      *samples
	before *samples // of another revision, or nil
	out    bytes.Buffer
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

func (p *page) row(cells ...string) { p.printf("| %s |\n", strings.Join(cells, " | ")) }

// header starts a table. align has an l or an r for each column.
func (p *page) header(align string, cells ...string) {
	p.row(cells...)
	p.printf("|%s\n", strings.NewReplacer("l", "---|", "r", "---:|").Replace(align))
}

func (p *page) head(command string) {
	c := p.s.config
	p.printf("# Results\n\n`cmd/report` writes this page from the output of the benchmarks. Do not edit it by " +
		"hand.\n\n")
	p.printf("- Command: `%s`\n- Date: %s\n- Machine: %s, %s processors, %s/%s; benchmarks on %s of them\n- Go: %s\n",
		command, c["date"], c["cpu"], c["cpus"], c["goos"], c["goarch"], p.s.procs, strings.TrimPrefix(c["go"], "go"))
	for _, m := range p.s.modules() {
		p.printf("- %s\n", m)
	}
	p.printf("\nFigures are medians; the benchmarks ran %s, all rivals in turn. ± is half the distance between the "+
		"quartiles. ", p.s.runs())
	p.printf("Ratios are medians of the ratios of each run, and are more reliable than times.\n")
}

// targets writes a table of all targets, or of the measured targets.
func (p *page) targets(measured bool) {
	p.printf("\n## Targets\n\nThe ratio is windowstat's time divided by the rival's time; less is better. ")
	p.printf("Some rows compare two operations of windowstat: the rival is then the operation after the colon.\n\n")
	head := []string{"what", "windowstat", "rival", "ratio or figure", "must", "aim", ""}
	if p.before != nil {
		p.printf("Before is the ratio or figure of the earlier revision, which ran in turn with the current one. The " +
			"rivals ran with the current revision only.\n\n")
		head = slices.Insert(head, 4, "before")
	}
	p.header("l"+strings.Repeat("r", len(head)-2)+"l", head...)
	for _, t := range list {
		v := t.judge(p.s)
		if !v.measured && measured {
			continue
		}
		figure := amount
		if _, turns := parts[t.unit]; turns || t.against != "" {
			figure = ratio
		}
		shown := func(known bool, v float64, write func(float64) string) string {
			if !known || math.IsNaN(v) {
				return ""
			}
			return write(v)
		}
		cells := []string{
			t.what, shown(v.measured, v.ours, amount), shown(v.measured, v.against, amount),
			shown(v.measured, v.value, figure),
			figure(t.must), figure(t.aim), v.word,
		}
		if p.before != nil {
			w := t.judge(p.before.beside(t.against, p.s))
			cells = slices.Insert(cells, 4, shown(w.measured, w.value, figure))
		}
		p.row(cells...)
	}
}

// bare lists the bare costs. They are no rivals, because they record nothing or next to nothing.
var bare = []string{"two-clock-readings", "one-atomic-add"}

// losses lists the rivals that are cheaper than windowstat, including rivals that record less.
func (p *page) losses() {
	p.printf("\n## Where windowstat loses\n\n")
	p.printf("All rivals that are cheaper than windowstat, including those that record less. The number in brackets " +
		"is the rival's figure divided by windowstat's.\n\n")
	for _, g := range []struct{ title, group, ours, unit string }{
		{"a call, serial", "Call", "windowstat", "ns/op"},
		{"a call, parallel", "CallParallel", "windowstat", "ns/op"},
		{"a call, 10,000 resources, serial", "Call10000", "windowstat", "ns/op"},
		{"a call, 10,000 resources, parallel", "Call10000Parallel", "windowstat", "ns/op"},
		{"a call with a limit, serial", "Limit", "windowstat", "ns/op"},
		{"a call with a limit, parallel", "LimitParallel", "windowstat", "ns/op"},
		{"reading QPS", "Read/qps", "windowstat", "ns/op"},
		{"memory, in use", "Memory", "windowstat-full", "B/resource"},
	} {
		ours, ok := p.s.median(g.group+"/"+g.ours, g.unit)
		if !ok {
			continue
		}
		var better []string
		for _, name := range p.s.under(g.group) {
			v, _ := p.s.median(g.group+"/"+name, g.unit)
			part, ok := p.s.ratio(g.group+"/"+name, g.group+"/"+g.ours, g.unit)
			if ok && part < 1 && !slices.Contains(bare, name) && !strings.HasPrefix(name, "windowstat") {
				better = append(better, fmt.Sprintf("%s %s (%.2f)", name, amount(v), part))
			}
		}
		if better == nil {
			better = []string{"nothing"}
		}
		p.printf("- %s (%s %s): %s\n", g.title, amount(ours), g.unit, strings.Join(better, ", "))
	}
	var missed []string
	for _, t := range list {
		if strings.HasPrefix(t.judge(p.s).word, miss) {
			missed = append(missed, t.what)
		}
	}
	if missed != nil {
		p.printf("- targets missed: %s\n", strings.Join(missed, "; "))
	}
}

// calls writes a table of the cost of a call.
func (p *page) calls() {
	p.printf("\n## One finished request\n\nNanoseconds per call. × is the rival's time divided by windowstat's; more " +
		"is better for windowstat.\n\n")
	p.header("lrrrrrrrrrrl", "", "serial", "×", "parallel", "×", "10,000 resources", "×", "10,000, parallel", "×",
		"allocations", "bytes", "lacks")
	lacks := map[string]string{}
	for _, r := range bench.Rivals() {
		lacks[r.Name] = r.Lacks
	}
	for _, name := range p.s.under("Call") {
		cells := []string{name}
		for _, group := range []string{"Call", "CallParallel", "Call10000", "Call10000Parallel"} {
			cells = append(cells, p.cell(group+"/"+name, "ns/op"), p.times(group, name))
		}
		memory := name
		if name == "windowstat" {
			memory = "windowstat-full"
		}
		p.row(append(cells, p.plain("Call/"+name, "allocs/op"),
			p.plain("Memory/"+memory, "B/resource"), lacks[name])...)
	}
	if unused, ok := p.s.median("Memory/windowstat-unused", "B/resource"); ok {
		p.printf("\nwindowstat's memory is measured for a resource with all windows full. A resource that is "+
			"registered and not used takes %s bytes.\n", amount(unused))
	}
	if leaf, ok := p.s.median("Memory40000/windowstat", "B/leaf"); ok {
		p.printf("\n10,000 resources with full windows that 4 origins each call, 4 times a second, take %s bytes for "+
			"each resource and origin.\n", amount(leaf))
	}
}

// limits writes a table of the cost of a call that a limit admits.
func (p *page) limits() {
	names := p.s.under("Limit")
	if len(names) == 0 {
		return
	}
	p.printf("\n## One request with a limit\n\nNanoseconds per call, with a QPS limit that is not reached. × is the " +
		"rival's time divided by windowstat's; more is better for windowstat.\n\n")
	p.header("lrrrrrl", "", "serial", "×", "parallel", "×", "allocations", "lacks")
	lacks := map[string]string{}
	for _, r := range bench.Limiters(bench.NeverReached) {
		lacks[r.Name] = r.Lacks
	}
	for _, name := range names {
		p.row(name, p.cell("Limit/"+name, "ns/op"), p.times("Limit", name),
			p.cell("LimitParallel/"+name, "ns/op"), p.times("LimitParallel", name),
			p.plain("Limit/"+name, "allocs/op"), lacks[name])
	}
}

// itself compares windowstat with itself.
func (p *page) itself() {
	var rows [][]string
	for _, group := range []string{"Beside", "Register"} {
		for _, name := range p.s.under(group) {
			ours, other, _ := strings.Cut(name, "/")
			full := group + "/" + name
			rows = append(rows, []string{
				strings.ReplaceAll(ours, "-", " "), p.cell(full, "ns/op"),
				strings.ReplaceAll(other, "-", " "), p.cell(full, "other-ns/op"), p.cell(full, beside),
			})
		}
	}
	if rows == nil {
		return
	}
	p.printf("\n## windowstat beside itself\n\nNanoseconds per operation. The two operations take short turns, so " +
		"the machine is in the same state for both. The ratio is the median of the ratios of the turns. ")
	p.printf("A registration includes the first call of the resource. Compared are the first 200 and the last 100 of " +
		"10,000 resources.\n\n")
	p.header("lrlrr", "", "ns", "beside", "ns", "ratio")
	for _, r := range rows {
		p.row(r...)
	}
}

func (p *page) times(group, name string) string {
	v, ok := p.s.ratio(group+"/"+name, group+"/windowstat", "ns/op")
	switch {
	case !ok:
		return ""
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func (p *page) reads() {
	p.printf("\n## Reading\n\n")
	p.header("lrr", "", "ns", "allocations")
	for _, name := range p.s.under("Read") {
		p.row(strings.Replace(name, "/", ": ", 1), p.cell("Read/"+name, "ns/op"), p.plain("Read/"+name, "allocs/op"))
	}
}

// cell returns a median with its spread, or an empty string if it was not measured.
func (p *page) cell(name, unit string) string {
	v, ok := p.s.median(name, unit)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s ±%.0f%%", amount(v), 100*p.s.spread(name, unit))
}

// plain returns a median without its spread.
func (p *page) plain(name, unit string) string {
	v, ok := p.s.median(name, unit)
	if !ok {
		return ""
	}
	return amount(v)
}

// amount formats a figure with three digits, and a large figure in full.
func amount(v float64) string {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1000:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}

// ratio formats a ratio with two decimals, and a small ratio as a fraction of one.
func ratio(v float64) string {
	switch {
	case v > 0 && v < 0.001:
		return "1/" + amount(1/v)
	case v > 0 && v < 0.5:
		return fmt.Sprintf("1/%.3g", math.Round(10/v)/10)
	case v >= 10:
		return amount(v)
	}
	return fmt.Sprintf("%.2f", v)
}
