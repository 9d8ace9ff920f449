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
	pages := flag.Bool("pages", false, "write only what is about pages, and was measured")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *command, *pages); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer, command string, onlyPages bool) error {
	s, err := read(r)
	if err != nil {
		return err
	}
	p := &page{s: s}
	if onlyPages {
		p.targets(true)
		p.pages()
		p.storm()
		p.viewers()
		_, err = w.Write(p.out.Bytes())
		return err
	}
	p.head(command)
	p.targets(false)
	p.losses()
	p.calls()
	p.limits()
	p.reads()
	p.pages()
	p.storm()
	p.viewers()
	p.itself()
	p.windows()
	p.turns()
	_, err = w.Write(p.out.Bytes())
	return err
}
