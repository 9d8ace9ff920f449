// Command report converts the output of this module's benchmarks into RESULTS.md.
//
// It reads the output of any number of runs, of go test -bench and of command hammer, from standard input, and writes
// medians, ratios and verdicts to standard output. With -before it also reads a file with the output of the same
// benchmarks for another revision, run on the same machine in turn with the current ones. It runs no benchmarks itself
// and contains no measured values.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	command := flag.String("command", "make -C bench results", "the command that made the input, to be shown")
	measured := flag.Bool("measured", false, "write only what was measured, without the head and the tables of rivals")
	before := flag.String("before", "", "the output of the revision before, if there is one")
	flag.Parse()
	if err := open(*before, *command, *measured); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func open(before, command string, onlyMeasured bool) error {
	if before == "" {
		return run(os.Stdin, nil, os.Stdout, command, onlyMeasured)
	}
	f, err := os.Open(before)
	if err != nil {
		return err
	}
	defer f.Close()
	return run(os.Stdin, f, os.Stdout, command, onlyMeasured)
}

// run writes the report of the output r. It compares r with the output of the earlier revision, before, unless before
// is nil.
func run(r, before io.Reader, w io.Writer, command string, onlyMeasured bool) error {
	s, err := read(r)
	if err != nil {
		return err
	}
	p := &page{s: s}
	if before != nil {
		if p.before, err = read(before); err != nil {
			return fmt.Errorf("before: %w", err)
		}
	}
	if !onlyMeasured {
		p.head(command)
	}
	p.targets(onlyMeasured)
	if !onlyMeasured { // the tables of rivals
		p.losses()
		p.calls()
		p.limits()
		p.middleware()
		p.reads()
	}
	p.pages()
	p.storm()
	p.waits()
	p.shared()
	p.scale()
	p.away()
	p.attached()
	p.viewers()
	p.replay()
	if !onlyMeasured {
		p.size()
		p.itself()
		p.windows()
		p.turns()
	}
	_, err = w.Write(p.out.Bytes())
	return err
}
