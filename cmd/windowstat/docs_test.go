package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/collector"
)

var (
	// code matches a code block, or code within a sentence.
	code = regexp.MustCompile("(?ms)^```[a-z]*\n.*?^```$|`[^`\n]+`")
	// documented matches a command in code.
	documented = regexp.MustCompile("(?m)^`?(?:windowstat|go run \\./cmd/windowstat) ([^`\n]+)")
	// word matches a word of a command, with or without quotes.
	word = regexp.MustCompile(`'[^']*'|[^\s']+`)
	// endsCommand matches a word that ends the arguments of a command in a shell.
	endsCommand = regexp.MustCompile(`^(#|>.*|2>.*|&&|\||&)$`)
)

// The commands of the documentation exist, with their flags and the texts of these.
func TestCommandsOfDocumentation(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range append(files, "../../README.md", "../../dashboards/README.md") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.ReplaceAll(string(b), "\\\n", " ") // a command may continue in the next line
		for _, m := range documented.FindAllStringSubmatch(strings.Join(code.FindAllString(page, -1), "\n"), -1) {
			n++
			words := word.FindAllString(m[1], -1)
			if end := slices.IndexFunc(words, endsCommand.MatchString); end >= 0 {
				words = words[:end]
			}
			for i := range words {
				words[i] = strings.Trim(words[i], "'")
			}
			if err := parseCommand(words); err != nil {
				t.Errorf("%s: windowstat %s: %v", path, m[1], err)
			}
		}
	}
	if n < 15 {
		t.Errorf("there are only %d commands", n)
	}
}

// parseCommand parses the flags of a command and their texts, and does not run the command.
func parseCommand(words []string) error {
	app := application(io.Discard, io.Discard)
	ran := ""
	for _, c := range app.Commands {
		c.Action = func(*cli.Context) error {
			ran = c.Name
			var errs []error
			for _, f := range c.Flags {
				if f, ok := f.(*cli.GenericFlag); ok {
					errs = append(errs, f.Value.(*flags.Value).Err())
				}
			}
			return errors.Join(errs...)
		}
	}
	if err := flags.Run(context.Background(), app, append([]string{"windowstat"}, words...)); err != nil {
		return err
	}
	if ran == "" && !slices.Contains(words, "--help") {
		return fmt.Errorf("no command ran")
	}
	return nil
}

// results returns the rows of the tables below a heading of bench/RESULTS.md, by their first cell. Of the other cells
// it returns the figure.
func results(t *testing.T, heading string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../../bench/RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
			if i > 0 {
				cells[i], _, _ = strings.Cut(cells[i], " ")
			}
		}
		rows[cells[0]] = cells
	}
	return rows
}

// reservedByResource is the memory, in KB, that a resource with one origin reserves.
func reservedByResource(t *testing.T) float64 {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Block(t.Context(), "first", "") // reserves its entrance, too
	before := c.Health().MemoryReserved
	c.Block(t.Context(), "second", "")
	return float64(c.Health().MemoryReserved-before) / 1000
}

// The figures in the documentation equal the ones in bench/RESULTS.md, rounded.
func TestFiguresOfDocumentation(t *testing.T) {
	cell := func(row []string, n int) float64 {
		t.Helper()
		if len(row) <= n {
			t.Fatalf("bench/RESULTS.md has no cell %d in %q", n, row)
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(row[n], ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	call, request := results(t, "One finished request"), results(t, "One request through middleware")
	const ns, times, allocations, bytes = 1, 2, 9, 10 // columns
	serial := func(name string) float64 { return cell(call[name], ns) }
	kB := func(name string) float64 { return cell(call[name], bytes) / 1000 }
	busy := cell(results(t, "Targets")["memory, windows and a history of ten minutes full"], 1) / 1000
	mux := cell(request["windowstat-mux"], 1) - cell(request["bare"], 1)
	numerals := []string{"no", "one", "two", "three", "four"}
	muxAllocations := numerals[int(cell(request["windowstat-mux"], 3)-cell(request["bare"], 3))]
	context := numerals[int(cell(call["windowstat-context"], allocations))]
	multiples := map[float64]string{1: "exactly", 2: "twice", 3: "three times"}
	dearer := multiples[math.Round(cell(call["windowstat-context"], times))]
	for path, sentences := range map[string][]string{
		"README.md": {
			fmt.Sprintf("A call costs %.0f ns with a kept handle, %.0f of them for the two clock readings "+
				"that timing needs; %.0f ns through a context; "+
				"%.0f ns with `httpstat.Mux`, %s allocations included.",
				serial("windowstat"), serial("two-clock-readings"), serial("windowstat-context"), mux, muxAllocations),
			fmt.Sprintf("some %.0f KB for a busy resource", busy),
			fmt.Sprintf("| one call, serial | %.0f ns | %.0f ns | %.0f ns, four metrics | %.0f ns | – |",
				serial("windowstat"), serial("sentinel-golang-entry"), serial("client_golang-classic"),
				serial("opentelemetry")),
			fmt.Sprintf("| memory of a name | %.0f KB, %.0f with history | %.0f KB | %.0f KB | %.0f KB | – |",
				kB("windowstat"), busy, kB("sentinel-golang-node"), kB("client_golang-classic"), kB("opentelemetry")),
		},
		"docs/seconds.md":   {fmt.Sprintf("a busy resource takes some %.0f KB", busy)},
		"docs/resources.md": {fmt.Sprintf("with one combination reserves some %.0f KB", reservedByResource(t))},
		"collector/options.go": {
			fmt.Sprintf("a busy resource takes some %.0f KB", busy),
			fmt.Sprintf("reserves some %.0f KB at its first call", reservedByResource(t)),
		},
		"collector/enter.go": {fmt.Sprintf("Enter and Exit cost about %s as much as [Resource.Enter] and Exit, "+
			"plus %s allocation for the context.", dearer, context)},
	} {
		b, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(b), "//", "")), " ")
		for _, sentence := range sentences {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(sentence)) {
				t.Errorf("%s does not say %q, as bench/RESULTS.md has it", path, sentence)
			}
		}
	}
}
