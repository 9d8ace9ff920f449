package flags

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag is the last argument if a shell requests completions. Its name is the library's, but this package
// handles it. The library's handler reads os.Args, has no words for the texts of flags, and runs the command if "--" is
// among the arguments.
const completionFlag = "--generate-bash-completion"

// scripts has a completion script for each shell, in a file with the name of the shell. A script runs windowstat with
// the words of the line and completionFlag, and shows the printed completions.
//
//go:embed completion
var scripts embed.FS

// The shells with a script, in the order of the help.
var shells = []string{"bash", "zsh", "fish"}

// completionCommand returns the command completion, which prints the completion script of a shell.
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

// complete prints the completions of the last word. words has all words of the line after the name of the program. Each
// line of the output is a completion, a tab, and a description. If complete prints nothing, the shell completes the
// names of files. complete never runs a command.
func complete(app *cli.App, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	for _, s := range suggest(app, words[:last], words[last]) {
		// The shell expects only words that continue the typed one.
		if !strings.HasPrefix(s.word, words[last]) {
			continue
		}
		if _, err := fmt.Fprintf(app.Writer, "%s\t%s\n", s.word, s.description); err != nil {
			return err
		}
	}
	return nil
}

// suggestion is a possible word, and a description that the shell shows next to it.
type suggestion struct{ word, description string }

// suggest returns the words that can follow the words before. The caller removes the results that do not begin with
// word. The kind of words depends on the position:
//
//   - before the command: commands, or the flags of the root command;
//   - after = in a flag, or after a flag that takes a text: the texts of the flag;
//   - after the command: its flags; commands after help, and shells after completion;
//   - after --: nothing.
func suggest(app *cli.App, before []string, word string) []suggestion {
	isFlag := strings.HasPrefix(word, "-")
	// The first word without a dash is the command, because the flags of the root command take no texts.
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
	// A flag before the cursor that lacks its text takes precedence: the next word must be the text.
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

// awaitingText returns the flag whose text is the next word, or nil if the next word is not the text of a flag.
func awaitingText(flags []cli.Flag, words []string) (awaits cli.Flag) {
	for _, word := range words {
		if awaits != nil {
			awaits = nil // this word is the text, even if it looks like a flag
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

// commandSuggestions suggests all commands.
func commandSuggestions(app *cli.App) (all []suggestion) {
	for _, c := range app.Commands {
		all = append(all, suggestion{c.Name, c.Usage})
	}
	return all
}

// flagSuggestions suggests flags, each with its usage as the description.
func flagSuggestions(flags []cli.Flag) (all []suggestion) {
	for _, f := range flags {
		// The backquotes mark the name of the text for the help. A shell would show them.
		usage := strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")
		all = append(all, suggestion{Name(f.Names()[0]), usage})
	}
	return all
}

// textSuggestions suggests the known texts of a flag, each after prefix. It returns nil if f is nil or has no list of
// texts.
func textSuggestions(f cli.Flag, prefix string) []suggestion {
	if f == nil {
		return nil
	}
	if v := valueOf(f); v != nil {
		return wordSuggestions(v.words, prefix)
	}
	return nil
}

// wordSuggestions suggests words without descriptions, each after prefix.
func wordSuggestions(words []string, prefix string) (all []suggestion) {
	for _, w := range words {
		all = append(all, suggestion{word: prefix + w})
	}
	return all
}
