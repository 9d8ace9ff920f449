package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// The help of each command fits a terminal of 80 columns, and has a usage for each flag.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	lines := [][]string{{"windowstat", "--help"}}
	for _, c := range application(io.Discard, io.Discard).Commands {
		lines = append(lines, []string{"windowstat", c.Name, "--help"})
	}
	for _, args := range lines {
		var out bytes.Buffer
		if status := run(t.Context(), args, &out, &out); status != 0 || !strings.Contains(out.String(), "USAGE:") {
			t.Errorf("%q: status %d:\n%s", args, status, &out)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q: %d columns: %s", args, n, line)
			}
		}
	}
}

// A usage is a noun phrase or an imperative, and names the text of its flag.
func TestUsagesOfFlags(t *testing.T) {
	t.Parallel()
	clause := regexp.MustCompile(`^(how|what|who|which|where|whether|when|if) `)
	named := regexp.MustCompile("`[A-Z=]+`")
	for _, c := range application(io.Discard, io.Discard).Commands {
		if clause.MatchString(c.Usage) {
			t.Errorf("%s: %q is a clause", c.Name, c.Usage)
		}
		for _, f := range c.Flags {
			usage, name := f.(cli.DocGenerationFlag).GetUsage(), c.Name+" --"+f.Names()[0]
			if usage == "" || clause.MatchString(usage) {
				t.Errorf("%s: usage %q", name, usage)
			}
			g, ok := f.(*cli.GenericFlag)
			isSwitch := !ok || g.Value.(interface{ IsBoolFlag() bool }).IsBoolFlag()
			if !isSwitch && !named.MatchString(usage) {
				t.Errorf("%s: no name of the text in %q", name, usage)
			}
		}
	}
}
