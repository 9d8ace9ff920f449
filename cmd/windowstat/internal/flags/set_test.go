package flags

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/collector"
)

// runCommand runs a command with the flags of a set. Its action checks them.
func runCommand(t *testing.T, set Set, checks func() error, args ...string) error {
	t.Helper()
	command := set.Command(&cli.Command{
		Name: "test", Action: func(c *cli.Context) error { return set.Check(c, checks()) },
	})
	version := Set{}.Command(&cli.Command{Name: "version"})
	app := App(&cli.App{
		Name: "app", Commands: []*cli.Command{command}, Writer: io.Discard, ErrWriter: io.Discard,
	}, version)
	return Run(t.Context(), app, append([]string{"app", "test"}, args...))
}

// All errors are reported together, by the names of flags, and each flag once.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "",
		"--log=a --size=3":         "",
		"--size=3":                 "--size: needs --log",
		"--log= --wait=0s":         "--log: is empty; omit the flag\n--wait: 0s would mean the default; omit the flag",
		"--zero=0 --follow":        "",
		"--follow --n=3 --wait=1s": "-n: cannot be combined with --follow",
		"--follow=false -n=3":      "",
		"--any=1":                  "--any: needs --log or --follow",
		"--any=1 --follow":         "",
		"--net=x --net=::1/64 --net=y": "" +
			`--net: "x" is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8` + "\n" +
			`--net: "y" is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8`,
		"--log=bad": "--log: no such directory",
		"--log=bad --wait=0s --size=1 extra": `test takes no arguments, got ["extra"]` +
			"\n--wait: 0s would mean the default; omit the flag\n--log: no such directory",
		"--wait=1m":                     "--wait: is too long\nOther.Field: is wrong\nplain",
		"--size=x --follow=maybe --any": "flag needs an argument: --any",
		"--size=x --follow=maybe --wait=1": `--size: "x" is not a whole number, such as 100` + "\n" +
			"--size: needs --log\n" +
			`--wait: "1" is not a duration, such as 1m30s` + "\n" + `--follow: "maybe" is neither true nor false`,
		"--lgo=x": "there is no flag --lgo; did you mean --log?",
	} {
		var log string
		var wait time.Duration
		networks := []string(nil)
		var size, zero, n, any int
		var follow bool
		set := Set{
			{Name: "log", Value: String(&log, ""), Of: "Log Log.Dir"},
			{Name: "size", Value: Number(&size, 0), Needs: []string{"log"}},
			{Name: "wait", Value: Number(&wait, 0), Of: "Wait"},
			{Name: "zero", Value: Number(&zero, 0), Zero: true},
			{Name: "follow", Value: Bool(&follow)},
			{Name: "n", Value: Number(&n, 0), Not: []string{"follow"}},
			{Name: "any", Value: Number(&any, 0), Needs: []string{"log|follow"}},
			{Name: "net", Value: List(&networks, func(s string) (string, error) {
				n, err := ParseNetwork(s)
				return n.String(), err
			})},
		}.Under("All")
		checks := func() error {
			var errs []error
			if log == "bad" {
				errs = append(errs, &collector.OptionError{Field: "Log.Dir", Err: errors.New("no such directory")})
			}
			if wait == time.Minute {
				errs = append(errs, &collector.OptionError{Field: "Wait", Err: errors.New("is too long")},
					&collector.OptionError{Field: "Other.Field", Err: errors.New("is wrong")}, errors.New("plain"))
			}
			return errors.Join(errs...)
		}
		err := runCommand(t, set, checks, strings.Fields(args)...)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && !errors.As(err, new(UsageError)) {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
}
