// Command report turns the output of this module's benchmarks into RESULTS.md.
//
// It reads the output of any number of runs, of go test -bench and of program hammer, from standard input, and writes
// medians, ratios and verdicts to standard output. It runs nothing itself and knows no figures.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	command := flag.String("command", "make -C bench results", "the command that made the input, to be shown")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *command); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer, command string) error {
	s, err := read(r)
	if err != nil {
		return err
	}
	p := &page{s: s}
	p.head(command)
	p.targets()
	p.losses()
	p.calls()
	p.limits()
	p.reads()
	p.itself()
	p.windows()
	p.turns()
	_, err = w.Write(p.out.Bytes())
	return err
}
