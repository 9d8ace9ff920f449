package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

var (
	// A block, or code within a sentence.
	code = regexp.MustCompile("(?ms)^```[a-z]*\n.*?^```$|`[^`\n]+`")
	// A command that stands there.
	documented = regexp.MustCompile("(?m)^`?(?:windowstat|go run \\./cmd/windowstat) ([^`\n]+)")
	// A word of a command, or one in quotes.
	word = regexp.MustCompile(`'[^']*'|[^\s']+`)
)

// The commands of the documentation exist, with their flags.
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
		page := strings.ReplaceAll(string(b), "\\\n", " ") // a command may go on in the next line
		for _, m := range documented.FindAllStringSubmatch(strings.Join(code.FindAllString(page, -1), "\n"), -1) {
			n++
			line, _, _ := strings.Cut(m[1], "  #")
			line, _, _ = strings.Cut(line, ">")
			line, _, _ = strings.Cut(line, "&&")
			if err := parseCommand(word.FindAllString(line, -1)); err != nil {
				t.Errorf("%s: windowstat %s: %v", path, line, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("there are only %d commands", n)
	}
}

// parseCommand parses the flags of a command, and does not run it.
func parseCommand(words []string) error {
	if words[0] == "--help" {
		return nil
	}
	for _, c := range commands() {
		if c.Name == words[0] {
			c.Action = func(context.Context, *cli.Command) error { return nil }
			c.OnUsageError = func(_ context.Context, _ *cli.Command, err error, _ bool) error { return err }
			return c.Run(context.Background(), words)
		}
	}
	return fmt.Errorf("there is no command %q", words[0])
}

// The memory of a busy resource is one number, that of the measurement, wherever it stands.
func TestMemoryOfABusyResource(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(strings.ReplaceAll(string(b), "//", "")), " ")
	}
	m := regexp.MustCompile(`\| memory, windows and a history of ten minutes full \| (\d+),\d+ \|`).FindStringSubmatch(read("bench/RESULTS.md"))
	if m == nil {
		t.Fatal("bench/RESULTS.md has no such row")
	}
	for path, sentence := range map[string]string{
		"README.md": "some %s KB for a busy resource", "collector/options.go": "a busy resource takes some %s KB", "docs/seconds.md": "a busy resource takes some %s KB",
	} {
		if want := fmt.Sprintf(sentence, m[1]); !strings.Contains(read(path), want) {
			t.Errorf("%s does not say %q, as bench/RESULTS.md has it", path, want)
		}
	}
}
