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
	measured := flag.Bool("measured", false, "write only what was measured of pages and replays")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *command, *measured); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer, command string, onlyMeasured bool) error {
	s, err := read(r)
	if err != nil {
		return err
	}
	p := &page{s: s}
	if onlyMeasured {
		p.targets(true)
		p.pages()
		p.storm()
		p.viewers()
		p.replay()
		_, err = w.Write(p.out.Bytes())
		return err
	}
	p.head(command)
	p.targets(false)
	p.losses()
	p.calls()
	p.limits()
	p.middleware()
	p.reads()
	p.pages()
	p.storm()
	p.viewers()
	p.replay()
	p.itself()
	p.windows()
	p.turns()
	_, err = w.Write(p.out.Bytes())
	return err
}
