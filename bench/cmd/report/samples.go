package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// samples holds the results of several runs.
type samples struct {
	config map[string]string
	names  []string                        // of benchmarks, in order of appearance, without the number of processors
	values map[string]map[string][]float64 // by name and unit
	procs  string                          // number of processors, from the names
}

func read(r io.Reader) (*samples, error) {
	s := &samples{config: map[string]string{}, values: map[string]map[string][]float64{}}
	in := benchfmt.NewReader(r, "standard input")
	for in.Scan() {
		switch rec := in.Result().(type) {
		case *benchfmt.Result:
			s.add(rec)
		case *benchfmt.SyntaxError:
			return nil, rec
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(s.names) == 0 {
		return nil, errors.New("there are no benchmarks in the input")
	}
	return s, nil
}

func (s *samples) add(rec *benchfmt.Result) {
	for _, c := range rec.Config {
		if c.File {
			s.config[c.Key] = string(c.Value)
		}
	}
	name := rec.Name.String()
	if _, parts := rec.Name.Parts(); len(parts) > 0 && strings.HasPrefix(string(parts[len(parts)-1]), "-") {
		last := string(parts[len(parts)-1])
		name, s.procs = strings.TrimSuffix(name, last), last[1:]
	}
	if s.values[name] == nil {
		s.names = append(s.names, name)
		s.values[name] = map[string][]float64{}
	}
	for _, v := range rec.Values {
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		s.values[name][unit] = append(s.values[name][unit], value)
	}
}

// median returns the median of a benchmark's values in a unit, and false if the benchmark did not run.
func (s *samples) median(name, unit string) (float64, bool) {
	values := slices.Sorted(slices.Values(s.values[name][unit]))
	if len(values) == 0 {
		return math.NaN(), false
	}
	return quantile(values, 0.5), true
}

// ratio returns the median of the ratios of two benchmarks in each run. Both benchmarks of a run ran in the same
// minute, so noise in that minute affects both. If they did not run equally often, ratio returns the ratio of the
// medians.
func (s *samples) ratio(name, by, unit string) (float64, bool) {
	a, b := s.values[name][unit], s.values[by][unit]
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), false
	}
	if len(a) != len(b) {
		x, _ := s.median(name, unit)
		y, _ := s.median(by, unit)
		return x / y, true
	}
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	slices.Sort(ratios)
	return quantile(ratios, 0.5), true
}

// beside returns s with the values of a rival from other if the rival did not run in s. windowstat's own benchmarks run
// in both.
func (s *samples) beside(rival string, other *samples) *samples {
	if rival == "" || s.values[rival] != nil || other.values[rival] == nil {
		return s
	}
	both := *s
	both.values = maps.Clone(s.values)
	both.values[rival] = other.values[rival]
	return &both
}

// spread returns half the distance between the quartiles, as a fraction of the median.
func (s *samples) spread(name, unit string) float64 {
	values := slices.Sorted(slices.Values(s.values[name][unit]))
	if m := quantile(values, 0.5); m != 0 {
		return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / m
	}
	return 0
}

func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low, part := math.Modf(at)
	v := sorted[int(low)]
	if part > 0 {
		v += part * (sorted[int(low)+1] - v)
	}
	return v
}

// under returns the names of the benchmarks below a group, without the group.
func (s *samples) under(group string) []string {
	var names []string
	for _, name := range s.names {
		if rest, ok := strings.CutPrefix(name, group+"/"); ok {
			names = append(names, rest)
		}
	}
	return names
}

// runs returns the lowest and the highest number of runs of a benchmark.
func (s *samples) runs() string {
	least, most := math.MaxInt, 0
	for _, name := range s.under("Call") {
		n := len(s.values["Call/"+name]["ns/op"])
		least, most = min(least, n), max(most, n)
	}
	if least == most || most == 0 {
		return times(most)
	}
	return fmt.Sprintf("%d to %d times", least, most)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// modules returns the modules that were measured.
func (s *samples) modules() []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(s.config)) {
		if strings.HasPrefix(key, "module") {
			list = append(list, s.config[key])
		}
	}
	return list
}
