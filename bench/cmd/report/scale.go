package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// steep is the exponent above which a cost is marked. A cost that is proportional to the size has exponent 1.
const steep = 1.1

// scale writes how each cost grows with the resources of a service, and with the origins of a resource, in one table
// each.
func (p *page) scale() {
	names := p.s.under("Scale")
	if len(names) == 0 {
		return
	}
	p.printf("\n## How costs grow\n\nNanoseconds per resource, or per origin of one resource. All are in use in " +
		"every second. ")
	p.printf("The exponent belongs to the power of the size that fits the times best: 1 means proportional growth; a " +
		"lower value means that a part is constant. ")
	p.printf("Exponents above %.1f are in bold.\n", steep)
	for _, what := range []string{"resources", "origins"} {
		var costs []string
		var sizes []int
		for _, name := range names {
			part := strings.Split(name, "/")
			n, err := strconv.Atoi(part[len(part)-1])
			if len(part) != 3 || part[1] != what || err != nil {
				continue
			}
			if !slices.Contains(costs, part[0]) {
				costs = append(costs, part[0])
			}
			if !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
		if costs == nil {
			continue
		}
		slices.Sort(sizes)
		p.printf("\n")
		head := []string{what}
		for _, n := range sizes {
			head = append(head, amount(float64(n)))
		}
		head = append(head, "exponent")
		if p.before != nil {
			head = append(head, "before")
		}
		p.header("l"+strings.Repeat("r", len(head)-1), head...)
		for _, cost := range costs {
			cells := []string{strings.ReplaceAll(cost, "_", " ")}
			for _, n := range sizes {
				cell := ""
				if v, ok := p.s.median(scaled(cost, what, n), "ns/op"); ok {
					cell = amount(v / float64(n))
				}
				cells = append(cells, cell)
			}
			cells = append(cells, p.s.growth(cost, what, sizes))
			if p.before != nil {
				cells = append(cells, p.before.growth(cost, what, sizes))
			}
			p.row(cells...)
		}
	}
}

// scaled returns the name of the benchmark of a cost.
func scaled(cost, what string, n int) string { return fmt.Sprintf("Scale/%s/%s/%d", cost, what, n) }

// growth returns the formatted exponent of a cost. It is empty if the cost was not measured for two sizes.
func (s *samples) growth(cost, what string, sizes []int) string {
	var at, times []float64
	for _, n := range sizes {
		if v, ok := s.median(scaled(cost, what, n), "ns/op"); ok && v > 0 {
			at, times = append(at, float64(n)), append(times, v)
		}
	}
	if len(at) < 2 {
		return ""
	}
	e := exponent(at, times)
	if e > steep {
		return fmt.Sprintf("**%.2f**", e)
	}
	return fmt.Sprintf("%.2f", e)
}

// exponent returns the slope of the least-squares line through the logarithms: times grow with this power of sizes.
func exponent(sizes, times []float64) float64 {
	var x, y, xx, xy float64
	for i := range sizes {
		a, b := math.Log(sizes[i]), math.Log(times[i])
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	n := float64(len(sizes))
	return (n*xy - x*y) / (n*xx - x*x)
}
