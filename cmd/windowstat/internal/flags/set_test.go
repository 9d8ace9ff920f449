package flags

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/collector"
)

// All mistakes are reported at once, in the words of flags, each flag once.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "",
		"--log=a --size=3":         "",
		"--size=3":                 "--size: needs --log",
		"--log= --wait=0s":         "--log: is empty; leave it out\n--wait: 0s is none; leave it out",
		"--zero=0 --follow":        "",
		"--follow --n=3 --wait=1s": "-n: not with --follow",
		"--follow=false -n=3":      "",
		"--any=1":                  "--any: needs --log or --follow",
		"--any=1 --follow":         "",
		"--net=x --net=::1/64 --net=y": `--net: "x" is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8` + "\n" +
			`--net: "y" is not an address or a network, such as 10.0.0.7 or 10.0.0.0/8`,
		"--log=bad":                          "--log: no such directory",
		"--log=bad --wait=0s --size=1 extra": `test takes no arguments, got ["extra"]` + "\n--wait: 0s is none; leave it out\n--log: no such directory",
		"--wait=1m":                          "--wait: is too long\nOther.Field: is wrong\nplain",
		"--lgo=x":                            "there is no flag --lgo; did you mean --log?",
	} {
		var log string
		var wait time.Duration
		networks := []string(nil)
		set := Set{
			{Of: "Log Log.Dir", Flag: &cli.StringFlag{Name: "log", Destination: &log}},
			{Needs: []string{"log"}, Flag: &cli.IntFlag{Name: "size"}},
			{Of: "Wait", Flag: &cli.DurationFlag{Name: "wait", Destination: &wait}},
			{Zero: true, Flag: &cli.IntFlag{Name: "zero"}},
			{Flag: &cli.BoolFlag{Name: "follow"}},
			{Not: []string{"follow"}, Flag: &cli.IntFlag{Name: "n"}},
			{Needs: []string{"log|follow"}, Flag: &cli.IntFlag{Name: "any"}},
			{Flag: &cli.GenericFlag{Name: "net", Value: Values(&networks, func(s string) (string, error) {
				n, err := ParseNetwork(s)
				return n.String(), err
			})}},
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
		c := &cli.Command{
			Name: "test", Flags: set.Flags(), Writer: io.Discard, ErrWriter: io.Discard,
			Action:       func(_ context.Context, c *cli.Command) error { return set.Check(c, checks()) },
			OnUsageError: func(_ context.Context, c *cli.Command, err error, _ bool) error { return Unknown(err, c.Flags) },
		}
		err := c.Run(t.Context(), append([]string{"test"}, strings.Fields(args)...))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && !errors.As(err, new(UsageError)) {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
}
