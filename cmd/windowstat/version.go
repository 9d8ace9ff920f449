package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/exporter"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which version this is",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return usage(err)
			}
			cli.ShowVersion(c)
			return nil
		},
	}
}

// version is that of the module, the commit if it was built in a checkout, and Go's.
func version() string {
	text := exporter.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " commit " + s.Value
			}
		}
	}
	return text + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
