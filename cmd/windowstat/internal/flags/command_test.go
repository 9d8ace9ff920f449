package flags

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// result holds the options of a test command, its arguments and its output.
type result struct {
	text, word string
	n          int
	wait       time.Duration
	follow     bool
	list       []string
	labels     map[string]string

	args []string
	out  strings.Builder
}

// try runs a command "test" with arguments for the root command.
func try(t *testing.T, args ...string) (*result, error) {
	t.Helper()
	var r result
	set := Set{
		{Name: "text", Value: String(&r.text, "none"), Usage: "`TEXT` to store"},
		{Name: "word", Value: OneOf(&r.word, "", "red", "green"), Usage: "`COLOR` to use"},
		{Name: "n", Value: Number(&r.n, 0), Usage: "`NUMBER` of rows"},
		{Name: "wait", Value: Number(&r.wait, time.Second), Usage: "`DURATION` of a pause", Category: "Times"},
		{Name: "follow", Value: Bool(&r.follow), Usage: "wait for more, with {{braces}} in the help"},
		{Name: "list", Value: Strings(&r.list), Usage: "`ITEM` of a list; repeatable"},
		{Name: "label", Value: Map(&r.labels), Usage: "`NAME=VALUE` of a label; repeatable"},
	}
	command := set.Command(&cli.Command{
		Name: "test", Usage: "test flags", ArgsUsage: "FILE…",
		Description: strings.Repeat("Long lines are wrapped. ", 9),
		Action: func(c *cli.Context) error {
			r.args = c.Args().Slice()
			return set.Check(c)
		},
	})
	version := Set{}.Command(&cli.Command{
		Name: "version", Usage: "print the version", Action: func(c *cli.Context) error {
			cli.ShowVersion(c)
			return nil
		},
	})
	app := App(&cli.App{
		Name: "app", Usage: "run tests", Version: "v1.2.3", Commands: []*cli.Command{command}, Writer: &r.out,
	}, version)
	return &r, Run(t.Context(), app, append([]string{"app"}, args...))
}

// Flags may follow arguments, and -- ends them. The library stops at the first argument.
func TestFlagsAfterArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"test a --text=x b -n 3 c":         {"a", "b", "c"},
		"test --text x -n=3 a":             {"a"},
		"test a -text x --n 3 - --follow":  {"a", "-"},
		"test --text x -n 3 -- a --follow": {"a", "--follow"},
		"test a --text x -n 3 -- -- b":     {"a", "--", "b"},
		"test --text x a help -n 3":        {"a", "help"},
	} {
		r, err := try(t, strings.Fields(line)...)
		if err != nil || r.text != "x" || r.n != 3 || !slices.Equal(r.args, want) {
			t.Errorf("%s: %v; text %q, n %d, arguments %q, want %q", line, err, r.text, r.n, r.args, want)
		}
	}
	if r, err := try(t, "test", "a", "--text", "--follow"); err != nil || r.text != "--follow" || r.follow {
		t.Errorf("a text that looks like a flag: %v, %q, %v", err, r.text, r.follow)
	}
}

// The error for a wrong flag or command names it, and suggests another.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"test --txet=x":       "there is no flag --txet; did you mean --text?",
		"test a --flolow":     "there is no flag --flolow; did you mean --follow?",
		"test a --text":       "flag needs an argument: --text",
		"test -n":             "flag needs an argument: -n",
		"tets":                `there is no command "tets"; did you mean test? See windowstat --help`,
		"help tets":           `there is no command "tets"; did you mean test? See windowstat --help`,
		"--help tets":         `there is no command "tets"; did you mean test? See windowstat --help`,
		"--verison":           "there is no flag --verison; did you mean --version?",
		"completion basch":    `completion takes one of bash, zsh, fish, got ["basch"]`,
		"completion bash zsh": `completion takes one of bash, zsh, fish, got ["bash" "zsh"]`,
	} {
		_, err := try(t, strings.Fields(line)...)
		if err == nil || err.Error() != want || !errors.As(err, new(UsageError)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// --help and --version are not commands' arguments, and run no action.
func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                   "COMMANDS:",
		"-h":                 "COMMANDS:",
		"help":               "COMMANDS:",
		"h test":             "FILE…",
		"--help test":        "FILE…",
		"test -h":            "FILE…",
		"test a --help":      "FILE…",
		"test --help a":      "FILE…",
		"test --n=x --help":  "FILE…",
		"--version":          "app version v1.2.3\n",
		"-v test":            "app version v1.2.3\n",
		"completion":         "source <(windowstat completion bash)",
		"help completion":    "source <(windowstat completion bash)",
		"completion --help":  "source <(windowstat completion bash)",
		"completion zsh":     "#compdef windowstat",
		"test --help --text": "{{braces}}",
	} {
		r, err := try(t, strings.Fields(line)...)
		if err != nil || !strings.Contains(r.out.String(), want) || r.args != nil {
			t.Errorf("%s: %v, arguments %q:\n%s", line, err, r.args, r.out.String())
		}
		for row := range strings.Lines(r.out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(row, "\n")); n > width && !strings.Contains(line, "zsh") {
				t.Errorf("%s: %d columns: %s", line, n, row)
			}
		}
	}
	r, err := try(t, "test", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n   --text TEXT\n       TEXT to store (default: none) [$WINDOWSTAT_TEXT]\n",
		"\n   -n NUMBER\n       NUMBER of rows [$WINDOWSTAT_N]\n",
		"\n   --follow\n", "\n   --help, -h\n",
		"\n   Times\n\n   --wait DURATION\n       DURATION of a pause (default: 1s) [$WINDOWSTAT_WAIT]\n",
	} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("no %q in\n%s", want, r.out.String())
		}
	}
}

// A variable has one value per line, commas included. An argument replaces all values of the variable.
func TestVariables(t *testing.T) {
	for name, text := range map[string]string{
		"TEXT": "a,b", "N": "", "WAIT": "3s", "FOLLOW": "true", "LIST": " a,b\nc ", "LABEL": "a=1,2\nb=x=y",
	} {
		t.Setenv("WINDOWSTAT_"+name, text)
	}
	r, err := try(t, "test")
	labels := map[string]string{"a": "1,2", "b": "x=y"}
	if err != nil || r.text != "a,b" || r.n != 0 || r.wait != 3*time.Second || !r.follow ||
		!slices.Equal(r.list, []string{" a,b", "c "}) || !maps.Equal(r.labels, labels) {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = try(t, "test", "--list=d,e", "--list=f", "--follow=false", "--label", "c=1,d=2", "--text=x")
	labels = map[string]string{"c": "1,d=2"}
	if err != nil || r.text != "x" || r.follow || !slices.Equal(r.list, []string{"d,e", "f"}) ||
		!maps.Equal(r.labels, labels) {
		t.Errorf("%v: %+v", err, r)
	}
	t.Setenv("WINDOWSTAT_TEXT", "")
	t.Setenv("WINDOWSTAT_WAIT", "x")
	t.Setenv("WINDOWSTAT_LABEL", "a\nb=1")
	_, err = try(t, "test")
	want := "--text: is empty; omit the flag\n" +
		`--wait: "x" is not a duration, such as 1m30s` + "\n" + `--label: "a" is not NAME=VALUE`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Completion offers what fits the word, and never runs a command.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const tests = "test\ttest flags\n"
	for _, tc := range []struct{ line, want string }{
		{"te", tests},
		{"", tests + "version\tprint the version\n"},
		{"--v", "--version\tprint the version\n"},
		{"test --te", "--text\tTEXT to store\n"},
		{"test a --te", "--text\tTEXT to store\n"},
		{"test -n 3 --fol", "--follow\twait for more"},
		{"test --word ", "red\t\ngreen\t\n"},
		{"test --word r", "red\t\n"},
		{"test --word=g", "--word=green\t\n"},
		{"test --text --word", ""}, // the word is a text
		{"test --text ", ""},
		{"test --nothing=", ""},
		{"test --follow ", ""},
		{"test a", ""},
		{"test --word red ", ""},
		{"nothing --te", ""},
		{"test -- --te", ""},
		{"test -- ", ""},
		{"help te", tests},
		{"completion b", "bash\t\n"},
	} {
		r, err := try(t, append(strings.Split(tc.line, " "), "--generate-bash-completion")...)
		got := r.out.String()
		if err != nil || !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" || r.args != nil {
			t.Errorf("%q: %v, %q, want %q", tc.line, err, got, tc.want)
		}
	}
	if r, err := try(t, "--generate-bash-completion"); err != nil || !strings.HasPrefix(r.out.String(), tests) {
		t.Errorf("without a word: %v, %q", err, r.out.String())
	}
}

// Runs share nothing, so the race detector finds no write to a global of the library.
func TestRunsInParallel(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for _, line := range []string{
				"", "--help", "-v", "help test", "test --help", "test a --n 3", "test --n x", "test --txet", "tets",
				"completion fish",
				"test --te --generate-bash-completion", "test -h", "--nothing",
			} {
				r, err := try(t, strings.Fields(line)...)
				if line == "test a --n 3" && (err != nil || r.n != 3) {
					t.Errorf("%v, n %d", err, r.n)
				}
			}
		})
	}
}
