package flags

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag is the last argument if a shell asks for completions. The name is the library's. The library's own
// handler does not suffice: it reads os.Args, knows no texts of flags, and runs the command if "--" is among the
// arguments.
const completionFlag = "--generate-bash-completion"

// scripts has a completion script for each shell.
//
//go:embed completion
var scripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

// completionCommand returns the command that prints a completion script.
func completionCommand(app *cli.App) *cli.Command {
	return Set{}.Command(&cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: strings.Join(shells, "|"),
		Description: `Load the script of bash or zsh in the startup file of the shell, and save the script of fish:

  source <(windowstat completion bash)
  source <(windowstat completion zsh)
  windowstat completion fish > ~/.config/fish/completions/windowstat.fish

In zsh, load the script after compinit.`,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cli.ShowCommandHelp(c, c.Command.Name)
			}
			shell := c.Args().First()
			if c.NArg() > 1 || !slices.Contains(shells, shell) {
				names := strings.Join(shells, ", ")
				return Usage(fmt.Errorf("completion takes one of %s, got %q", names, c.Args().Slice()))
			}
			script, err := scripts.ReadFile("completion/" + shell)
			if err != nil {
				return err
			}
			_, err = app.Writer.Write(script)
			return err
		},
	})
}

// complete prints the completions of the last word, after the words before it. A line is a completion, a tab and its
// description. Without a line the shell completes file names. complete never runs a command.
func complete(app *cli.App, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	for _, s := range suggest(app, words[:last], words[last]) {
		if !strings.HasPrefix(s.word, words[last]) {
			continue
		}
		if _, err := fmt.Fprintf(app.Writer, "%s\t%s\n", s.word, s.description); err != nil {
			return err
		}
	}
	return nil
}

// suggestion is a possible completion.
type suggestion struct{ word, description string }

// suggest returns the possible words after the words before. The caller selects those that begin with word.
func suggest(app *cli.App, before []string, word string) []suggestion {
	isFlag := strings.HasPrefix(word, "-")
	i := slices.IndexFunc(before, func(s string) bool { return !strings.HasPrefix(s, "-") })
	switch {
	case slices.Contains(before, "--"):
		return nil
	case i < 0 && isFlag:
		return flagSuggestions(app.Flags)
	case i < 0:
		return commandSuggestions(app)
	}
	c := app.Command(before[i])
	if c == nil {
		return nil
	}
	if isFlag {
		if name, _, ok := strings.Cut(word, "="); ok {
			return textSuggestions(flagOf(c.Flags, name), name+"=")
		}
	}
	if awaits := awaitingText(c.Flags, before[i+1:]); awaits != nil {
		return textSuggestions(awaits, "")
	}
	switch {
	case isFlag:
		return flagSuggestions(c.Flags)
	case c.Name == "help":
		return commandSuggestions(app)
	case c.Name == "completion":
		return wordSuggestions(shells, "")
	}
	return nil
}

// awaitingText returns the flag whose text follows the words, or nil.
func awaitingText(flags []cli.Flag, words []string) (awaits cli.Flag) {
	for _, word := range words {
		if awaits != nil {
			awaits = nil // the word is its text, even if it looks like a flag
			continue
		}
		if !strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		if f := flagOf(flags, word); f != nil && takesText(f) {
			awaits = f
		}
	}
	return awaits
}

func commandSuggestions(app *cli.App) (all []suggestion) {
	for _, c := range app.Commands {
		all = append(all, suggestion{c.Name, c.Usage})
	}
	return all
}

func flagSuggestions(flags []cli.Flag) (all []suggestion) {
	for _, f := range flags {
		usage := strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")
		all = append(all, suggestion{Name(f.Names()[0]), usage})
	}
	return all
}

// textSuggestions returns the texts of a flag that has a list of them; f may be nil.
func textSuggestions(f cli.Flag, prefix string) []suggestion {
	if f == nil {
		return nil
	}
	if v := valueOf(f); v != nil {
		return wordSuggestions(v.words, prefix)
	}
	return nil
}

func wordSuggestions(words []string, prefix string) (all []suggestion) {
	for _, w := range words {
		all = append(all, suggestion{word: prefix + w})
	}
	return all
}
